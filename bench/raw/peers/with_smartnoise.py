"""SmartNoise's MST with its own preprocessing: `python with_smartnoise.py FOLDER` where snsynth is installed."""

import pandas as pd
from handed import Asked, answer, of_type
from snsynth import Synthesizer

PREPROCESSING = 0.2
"""The part of ε that finds the bounds of numbers."""


def make(rows: pd.DataFrame, asked: Asked) -> pd.DataFrame:
    times = of_type(asked, "date", "datetime")
    for name in times:
        rows[name] = (rows[name] - pd.Timestamp(0)).dt.total_seconds()
    synthesizer = Synthesizer.create("mst", epsilon=asked["epsilon"], delta=asked["delta"])
    synthesizer.fit(
        rows,
        categorical_columns=of_type(asked, "category"),
        continuous_columns=[name for name in rows if name not in of_type(asked, "category")],
        preprocessor_eps=PREPROCESSING * asked["epsilon"],
    )
    made = synthesizer.sample(len(rows))
    for name in times:
        made[name] = pd.to_datetime(made[name].astype(float), unit="s").dt.floor("s")
    return made


answer(make)

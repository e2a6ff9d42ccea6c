"""SDV's GaussianCopula, which has no privacy at all: `python with_sdv.py FOLDER` where sdv is installed."""

import pandas as pd
from handed import Asked, answer
from sdv.metadata import Metadata
from sdv.single_table import GaussianCopulaSynthesizer

TYPES = {"category": "categorical", "date": "datetime", "datetime": "datetime"}


def make(rows: pd.DataFrame, asked: Asked) -> pd.DataFrame:
    kinds = {name: {"sdtype": TYPES.get(column["type"], "numerical")} for name, column in asked["columns"].items()}
    synthesizer = GaussianCopulaSynthesizer(Metadata.load_from_dict({"tables": {"rows": {"columns": kinds}}}))
    synthesizer.fit({"rows": rows})
    return synthesizer.sample(len(rows))["rows"]


answer(make)

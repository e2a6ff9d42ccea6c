"""dpmm's MST with PrivTree bins, its defaults otherwise: `python with_dpmm.py FOLDER` where dpmm is installed."""

import pandas as pd
from dpmm.pipelines import MSTPipeline
from handed import Asked, answer, of_type


def make(rows: pd.DataFrame, asked: Asked) -> pd.DataFrame:
    domain = {
        name: {"lower": column.get("min"), "upper": column.get("max")} for name, column in asked["columns"].items()
    }
    for name in of_type(asked, "category"):
        domain[name] = {"categories": asked["columns"][name]["values"]}
        rows[name] = rows[name].astype("category")
    for name in of_type(asked, "date", "datetime"):
        domain[name] = {end: pd.Timestamp(moment) for end, moment in domain[name].items()}
    pipeline = MSTPipeline(epsilon=asked["epsilon"], delta=asked["delta"])
    pipeline.fit(rows, domain)
    return pipeline.generate(n_records=len(rows))


answer(make)

"""Codes in words: a label for every code, from the declaration alone."""

import numpy as np
import pytest

from hedgerow.schema import Schema

SCHEMA = Schema.from_dict(
    {
        "columns": {
            "age": {
                "type": "integer",
                "min": 0,
                "max": 9,
                "bins": 3,
                "special": [99],
                "missing": {"": "not asked", "-8": "refused"},
            },
            "wage": {"type": "integer", "min": 0, "max": 99, "bins": 4, "heaps": [10, 5]},
            "part": {"type": "number", "min": 0, "max": 1, "bins": 4, "other": True},
            "born": {"type": "date", "min": "2000-01-15", "max": "2000-04-02", "step": "month"},
            "quarter": {"type": "date", "min": "2000-01-15", "max": "2000-08-02", "step": "quarter"},
            "seen": {"type": "datetime", "min": "2000-01-01T00:00:00", "max": "2000-01-01T02:59:59", "step": "hour"},
            "city": {"type": "category", "values": ["north", "other"], "other": True, "missing": True},
            "grade": {"type": "category", "values": ["low", "high"], "ordered": True},
            "flag": {"type": "boolean", "missing": True},
            "site": {"type": "code", "size": 3},
            "left": {"type": "code", "size": 2, "missing": True},
            "right": {"type": "code", "size": 2},
        },
        "groups": [{"columns": ["left", "right"], "allowed": [["0", "0"], ["1", "1"], [None, "1"]]}],
    }
)
ENCODING = SCHEMA.encoding()
LABELS = {
    "age": ["0 – 2", "3 – 5", "6 – 9", "99", "not asked", "refused"],
    "wage": ["0 – 24", "25 – 49", "50 – 74", "75 – 99", "fits nothing declared"],
    "wage:heap": ["divisible by 10", "divisible by 5", "by none"],
    "part": ["0 – 0.25", "0.25 – 0.5", "0.5 – 0.75", "0.75 – 1", "other"],
    "born": ["2000-01", "2000-02", "2000-03", "2000-04", "fits nothing declared"],
    "quarter": [
        "2000-01-15 – 2000-03-31",
        "2000-04-01 – 2000-06-30",
        "2000-07-01 – 2000-08-02",
        "fits nothing declared",
    ],
    "seen": ["2000-01-01 00 h", "2000-01-01 01 h", "2000-01-01 02 h", "fits nothing declared"],
    "city": ["north", "other", "missing"],
    "grade": ["low", "high", "fits nothing declared"],
    "flag": ["False", "True", "missing", "fits nothing declared"],
    "site": ["0", "1", "2"],
    "left+right": ["0 · 0", "1 · 1", "missing · 1", "fits nothing declared"],
}


@pytest.mark.parametrize("attribute", [attribute.name for attribute in ENCODING.domain])
def test_every_code_has_a_label(attribute):
    assert ENCODING.labels(attribute) == LABELS[attribute]
    assert len(LABELS[attribute]) == ENCODING.domain[attribute].size


def test_codes_in_order_come_first_and_without_those_that_have_no_place():
    line = {name: ENCODING.ordered(name) for name in ENCODING.domain.names if ENCODING.ordered(name)}
    assert line == {"age": 3, "wage": 4, "part": 4, "born": 4, "quarter": 3, "seen": 3, "grade": 2}


def test_codes_of_missing_values():
    found = {column: np.flatnonzero(ENCODING.missing(column)).tolist() for column in ENCODING.columns}
    assert {column: codes for column, codes in found.items() if codes} == {
        "age": [4, 5],
        "city": [2],
        "flag": [2],
        "left": [2],  # the combination whose left side is missing
    }

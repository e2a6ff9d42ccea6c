"""Can a machine tell synthetic values from real ones? PRIVATE: it learns from real rows.

Unlike `propensity`, which looks at codes, it sees what a reader of the file sees: every digit, every spike, every gap.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats

from hedgerow.coded.domain import IntArray
from hedgerow.private.evaluate.classifier import MOST_CATEGORIES, one_thread
from hedgerow.private.evaluate.metric import Comparison, Figure, Metric
from hedgerow.private.evaluate.profiles import DAY, weekdays
from hedgerow.private.evaluate.raw import RawColumn, RawTable
from hedgerow.schema.arrays import BoolArray, FloatArray

MOST_ROWS = 50_000
"""Rows that are taken from each table."""
FOLDS, TREES = 3, 100
ALONE_ROWS, ALONE_FOLDS, ALONE_TREES = 5_000, 2, 30
"""The same for the machines that see one column alone."""


def detected(real: RawTable, synthetic: RawTable, seed: int = 0) -> float:
    """Area under the ROC curve of gradient-boosted trees that learn to tell synthetic rows from real ones.

    That is the probability that of a real and a synthetic row which it has not seen the machine takes the right one for
    the synthetic one; ½ is a coin. As many rows of both tables, at most 50,000 each, in three folds: each is judged by
    trees that learnt from the other two. Numbers stand as they are; a date also gives its weekday, a moment also its
    time of day; categories (255 at most, by number beyond) are split by sets.
    """
    return _area(real, synthetic, tuple(real.columns), seed, MOST_ROWS, FOLDS, TREES)


def detected_alone(real: RawTable, synthetic: RawTable, seed: int = 0) -> dict[str, float]:
    """The same for machines that see one column alone: which columns give a table away by themselves."""
    return {name: _area(real, synthetic, (name,), seed, ALONE_ROWS, ALONE_FOLDS, ALONE_TREES) for name in real.columns}


def area(scores: FloatArray, made_up: BoolArray) -> float:
    """The area under the ROC curve: how often a synthetic row has a higher score than a real one, ties half."""
    ranks = stats.rankdata(scores)
    ours, theirs = int((~made_up).sum()), int(made_up.sum())
    return float((ranks[made_up].sum() - theirs * (theirs + 1) / 2) / (ours * theirs))


def told(area: float) -> str:
    """An area in words."""
    said = ((0.95, "told apart nearly always"), (0.8, "mostly told apart"), (0.6, "told apart now and then"))
    return next((words for least, words in said if area >= least), "hardly told apart")


def _area(
    real: RawTable, synthetic: RawTable, names: tuple[str, ...], seed: int, most: int, folds: int, trees: int
) -> float:
    rng = np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, most])))
    each = min(real.rows, synthetic.rows, most)
    if each < folds:
        return 0.5
    rows = [(table, rng.permutation(table.rows)[:each]) for table in (real, synthetic)]
    features = np.concatenate([_features(table, names, kept) for table, kept in rows])
    sets = _sets(real, synthetic, names)
    made_up = np.repeat([False, True], each)
    fold = np.tile(np.arange(each) % folds, 2)  # every fold holds as many rows of either table
    areas = [_area_of(features, made_up, fold == asked, sets, trees) for asked in range(folds)]
    return float(np.mean(areas))


def _area_of(
    features: FloatArray, made_up: BoolArray, asked: BoolArray, sets: npt.NDArray[np.bool_], trees: int
) -> float:
    features = np.where(np.isnan(features[~asked]).all(axis=0), 0, features)  # nothing to learn from
    machine = _machine(sets, trees)
    with one_thread():
        machine.fit(features[~asked], made_up[~asked])
        scores = machine.predict_proba(features[asked])[:, 1]
    return area(scores, made_up[asked])


def _machine(sets: npt.NDArray[np.bool_], trees: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(
        max_iter=trees, categorical_features=sets, early_stopping=False, random_state=0
    )


def _features(table: RawTable, names: tuple[str, ...], rows: IntArray) -> FloatArray:
    return np.column_stack([part for name in names for part in _parts(table.columns[name], rows)])


def _parts(column: RawColumn, rows: IntArray) -> list[FloatArray]:
    values = column.values[rows]
    match column.kind:
        case "day":
            return [values, weekdays(values)]
        case "moment":
            return [values, weekdays(values), np.mod(values, DAY)]
        case _:
            return [values]


def _sets(real: RawTable, synthetic: RawTable, names: tuple[str, ...]) -> npt.NDArray[np.bool_]:
    """Which features are split by sets of values."""
    first: IntArray = np.zeros(1, dtype=np.int64)
    return np.array(
        [
            real.columns[name].kind == "category" and max(_most(real, name), _most(synthetic, name)) < MOST_CATEGORIES
            for name in names
            for _ in _parts(real.columns[name], first)
        ]
    )


def _most(table: RawTable, name: str) -> float:
    return float(table.columns[name].values.max())


def _told_apart(comparison: Comparison) -> dict[str, Any]:
    real, synthetic = comparison.values
    alone = detected_alone(real, synthetic, comparison.seed)
    together = detected(real, synthetic, comparison.seed)
    return {
        "detector": together,
        "detector_verdict": told(together),
        "detector_at": max(alone, key=alone.__getitem__),
        "detector_columns": alone,
    }


DETECTOR = Metric(
    "detector",
    _told_apart,
    {
        "detector": Figure(
            "detector",
            "area under the curve of boosted trees that tell synthetic from real values; 0.5 is a coin, 1 always",
            headline=True,
            words="Shown a real and a synthetic row, a machine finds the synthetic one {} of the time; a coin, 50 %.",
        )
    },
    needs=("values", "scikit-learn"),
    draws=True,
)

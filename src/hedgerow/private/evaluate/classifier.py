"""How useful the synthetic rows are for prediction. PRIVATE: tested on real rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt

from hedgerow.coded.domain import CodedTable, Domain, IntArray, Marginal
from hedgerow.errors import OptionError, TableError
from hedgerow.private.evaluate.metric import Comparison, Figure, Metric
from hedgerow.private.sources.coded import rows_of

TEST_SHARE = 0.2
MOST_TRAINING_ROWS = 50_000
MOST_CATEGORIES = 255
"""Values that the boosting machine can tell apart without an order among them."""


@dataclass(frozen=True)
class Misclassification:
    """Shares of the real test rows whose class was guessed wrong, by what the guesser had learnt from."""

    synthetic: float
    real: float
    majority: float


def svm(real: CodedTable, synthetic: CodedTable, domain: Domain, target: Marginal, seed: int = 0) -> Misclassification:
    """Misclassification of a linear support vector machine that learns the target from all other attributes.

    A fifth of the real rows, drawn by the seed, is the test. `synthetic`: trained on synthetic rows. `real`: trained
    on the other four fifths. `majority`: the most frequent class of those, for every row. At most 50,000 training
    rows each. Features are the one-hot codes of the attributes outside `target`, the class is the code of its first
    attribute. The loss is the squared hinge with C = 0.1; one class against the rest where there are more than two.
    """
    return _misclassification(_svm_machine(), real, synthetic, domain, target, seed)


def boosting(
    real: CodedTable, synthetic: CodedTable, domain: Domain, target: Marginal, seed: int = 0
) -> Misclassification:
    """Misclassification of gradient-boosted trees (`boosting_machine`), trained and tested on the rows of `svm`.

    Trees see how several attributes act together, which a linear machine does not.
    """
    machine = boosting_machine(domain, _features(domain, target))
    return _misclassification(machine, real, synthetic, domain, target, seed)


def boosting_machine(domain: Domain, attributes: Sequence[str]) -> Any:
    """Scikit-learn's histogram gradient boosting: 50 trees of at most 31 leaves.

    Unordered attributes of at most 255 values are split by sets of values, all others by a threshold on the code.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier

    sets = [not domain[name].ordered and domain[name].size <= MOST_CATEGORIES for name in attributes]
    return HistGradientBoostingClassifier(max_iter=50, categorical_features=sets, early_stopping=False, random_state=0)


@contextmanager
def one_thread() -> Iterator[None]:
    """Machines learn on one thread: on so few rows threads wait for each other longer than they work."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        yield


def feature_codes(table: CodedTable, attributes: Sequence[str], rows: IntArray) -> npt.NDArray[np.int32]:
    """The codes of some rows, one column for each attribute."""
    return np.column_stack([table[name][rows].astype(np.int32) for name in attributes])


def available() -> bool:
    """Whether scikit-learn is installed; it is not imported for that."""
    return find_spec("sklearn") is not None


def check_available(metric: str) -> None:
    """Refuse, before anything is read, where scikit-learn is not installed."""
    if not available():
        raise OptionError(
            "missing-package",
            f'the metric "{metric}" needs scikit-learn, which is not installed. '
            'Hint: pip install "hedgerow[evaluate]", or name other --metrics.',
        )


def _features(domain: Domain, target: Marginal) -> list[str]:
    features = [name for name in domain.names if name not in target]
    if not features:
        raise OptionError(
            "nothing-to-learn-from",
            "a classifier needs a column besides the target to predict it from; the schema has no other.",
        )
    return features


def _misclassification(
    machine: Any, real: CodedTable, synthetic: CodedTable, domain: Domain, target: Marginal, seed: int
) -> Misclassification:
    features = _features(domain, target)
    rng = np.random.Generator(np.random.Philox(seed))
    order = rng.permutation(rows_of(real))
    test_rows = max(1, round(TEST_SHARE * len(order)))
    test, train = order[:test_rows], order[test_rows : test_rows + MOST_TRAINING_ROWS]
    if not len(train):
        raise TableError(
            "too-few-rows", "a classifier needs at least two real rows, one to learn from and one to test with."
        )
    borrowed = rng.permutation(rows_of(synthetic))[:MOST_TRAINING_ROWS]

    def classes(table: CodedTable, rows: IntArray) -> npt.NDArray[Any]:
        return table[target[0]][rows]

    def error(guesses: npt.NDArray[Any]) -> float:
        return float((guesses != classes(real, test)).mean())

    asked = feature_codes(real, features, test)

    def error_after(table: CodedTable, rows: IntArray) -> float:
        return error(_guesses(machine, feature_codes(table, features, rows), classes(table, rows), asked))

    most_frequent = np.bincount(classes(real, train)).argmax()
    return Misclassification(
        synthetic=error_after(synthetic, borrowed),
        real=error_after(real, train),
        majority=error(np.full(test_rows, most_frequent)),
    )


def _svm_machine() -> Any:
    """Unseen codes say nothing."""
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder
    from sklearn.svm import LinearSVC

    return make_pipeline(OneHotEncoder(handle_unknown="ignore"), LinearSVC(C=0.1, dual=False, tol=1e-2))


def _guesses(
    machine: Any, codes: npt.NDArray[Any], classes: npt.NDArray[Any], asked: npt.NDArray[Any]
) -> npt.NDArray[Any]:
    """The classes that a machine trained on the codes gives to the rows asked about."""
    from sklearn.base import clone
    from sklearn.exceptions import ConvergenceWarning

    if (classes == classes[0]).all():
        return np.full(len(asked), classes[0])
    with warnings.catch_warnings(), one_thread():
        warnings.simplefilter("ignore", ConvergenceWarning)  # what is not found in 1,000 iterations hardly matters
        guesses: npt.NDArray[Any] = clone(machine).fit(codes, classes).predict(asked)
    return guesses


MAJORITY = Figure("majority", "the same for always answering the most frequent class", about="real rows")
ON_REAL_ROWS = Figure("… on real rows", "the same after training on real rows", about="real rows")


def _learning(name: str, learn: Callable[..., Misclassification], figure: Figure) -> Metric:
    def compute(comparison: Comparison) -> dict[str, float]:
        wrong = learn(*comparison.tables, comparison.label, comparison.seed)
        return {name: wrong.synthetic, f"{name}_real": wrong.real, "majority": wrong.majority}

    figures = {name: figure, f"{name}_real": ON_REAL_ROWS, "majority": MAJORITY}
    return Metric(name, compute, figures, needs=("target", "scikit-learn"), draws=True, compared=True)


SVM = _learning(
    "svm",
    svm,
    Figure("linear classifier", "real rows misclassified by a linear machine after training on synthetic rows"),
)
BOOSTING = _learning(
    "boosting",
    boosting,
    Figure("boosted trees", "real rows misclassified by boosted trees after training on synthetic rows"),
)
MACHINES = {"svm": "linear support vector machine", "boosting": "gradient-boosted trees"}
"""What each is called in full."""

"""How useful the synthetic rows are for prediction. PRIVATE: tested on real rows."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hedgerow.domain import CodedTable, Domain, IntArray, Marginal
from hedgerow.engines.coded import rows_of
from hedgerow.errors import OptionError, TableError

TEST_SHARE = 0.2
MOST_TRAINING_ROWS = 50_000


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
    features = [name for name in domain.names if name not in target]
    if not features:
        raise OptionError("svm needs a column besides the target to predict it from; the schema has no other.")
    coins = np.random.Generator(np.random.Philox(seed))
    order = coins.permutation(rows_of(real))
    test_rows = max(1, round(TEST_SHARE * len(order)))
    test, train = order[:test_rows], order[test_rows : test_rows + MOST_TRAINING_ROWS]
    if not len(train):
        raise TableError("svm needs at least two real rows, one to learn from and one to test with.")
    borrowed = coins.permutation(rows_of(synthetic))[:MOST_TRAINING_ROWS]

    def classes(table: CodedTable, rows: IntArray) -> npt.NDArray[Any]:
        return table[target[0]][rows]

    def codes(table: CodedTable, rows: IntArray) -> npt.NDArray[Any]:
        return np.column_stack([table[name][rows].astype(np.int32) for name in features])

    def error(guesses: npt.NDArray[Any]) -> float:
        return float((guesses != classes(real, test)).mean())

    def error_after(table: CodedTable, rows: IntArray) -> float:
        return error(_guesses(codes(table, rows), classes(table, rows), codes(real, test)))

    most_frequent = np.bincount(classes(real, train)).argmax()
    return Misclassification(
        synthetic=error_after(synthetic, borrowed),
        real=error_after(real, train),
        majority=error(np.full(test_rows, most_frequent)),
    )


def check_available() -> None:
    """Refuse, before anything is read, where scikit-learn is not installed."""
    try:
        import sklearn  # noqa: F401
    except ImportError:
        raise OptionError(
            'the metric "svm" needs scikit-learn, which is not installed. Nothing was read. '
            'Hint: pip install "hedgerow[evaluate]", or leave out --target.'
        ) from None


def _guesses(codes: npt.NDArray[Any], classes: npt.NDArray[Any], asked: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The classes that a machine trained on the codes gives to the rows asked about. Unseen codes say nothing."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder
    from sklearn.svm import LinearSVC

    if (classes == classes[0]).all():
        return np.full(len(asked), classes[0])
    machine = make_pipeline(OneHotEncoder(handle_unknown="ignore"), LinearSVC(C=0.1, dual=False, tol=1e-2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # what is not found in 1,000 iterations hardly matters
        machine.fit(codes, classes)
    guesses: npt.NDArray[Any] = machine.predict(asked)
    return guesses

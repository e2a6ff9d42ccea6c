"""Every kind of model keeps the laws of models, and models that break one are caught."""

import numpy as np
import pytest

import hedgerow as hr
from hedgerow import models
from hedgerow.audit import Violation, check_method, check_model
from hedgerow.audit.model import read, tampered
from hedgerow.coded.domain import Domain
from hedgerow.coded.joining import Join, Joining
from hedgerow.errors import HedgerowError
from hedgerow.methods.independent import Independent
from hedgerow.methods.rdt import RDT
from hedgerow.models.evened import Evened
from hedgerow.models.histograms import Histograms, Part
from hedgerow.models.joined import Joined
from hedgerow.models.model import FromMarginals, Model, State
from hedgerow.models.records import Adjusted, Target
from hedgerow.models.tilted import Tilted
from hedgerow.samples import opm

SCHEMA = hr.Schema.parse(opm.SCHEMA)
SMALL = Domain.of({"a": 3, "b": 4, "c": 2})


def release(method, epsilon=4.0):
    return hr.synthesize(opm.generate(2000), SCHEMA, hr.Budget(epsilon), method, unsafe_noise_seed=1).model


def adjusted():
    held = models.graphical.model.GraphicalModel.uniform(SMALL, 5000.0)
    shares = np.arange(1.0, 13).reshape(3, 4)
    columns = np.full((3, 4), 1 / 12)  # an exchange leaves every column as it was
    return Adjusted(held, [Target(("a", "b"), 0.9 * columns + 0.1 * shares / shares.sum())])


def evened():
    """In a pair that the adjusted model has as a target, and in all three columns."""
    return Evened(adjusted(), [("a", "b"), ("a", "b", "c")])


def tilted():
    pool = {"a": np.array([0, 1, 2, 2], np.uint8), "b": np.array([0, 1, 2, 3], np.uint8)}
    tilts = {"c": np.log(np.array([[1.0, 2, 3, 1, 1, 1, 1], [3.0, 2, 1, 1, 1, 1, 2]]))}
    return Tilted(SMALL, ("c",), np.array([3000.0, 2000.0]), pool, tilts, {("a", "b"): 1.0})


def joined():
    """Also what its rest is made of: two columns that were joined already, and a third."""
    inner = Joining(SMALL, {"a + b": Join({"a": 3, "b": 4}, np.array([[0, 1], [2, 3]]))})
    columns = Histograms(Domain.of({"a": 3, "b": 4}), [Part(("a",), np.arange(1.0, 4)), Part(("b",), np.ones(4))], 9.0)
    apart = Histograms(inner.target(), [Part(("a + b",), np.arange(1.0, 4)), Part(("c",), np.ones(2))], 7.0)
    outer = Joining(
        Domain.of({"z": 3, "a": 3, "b": 4, "c": 2}),
        {"a + b + c": Join({"a": 3, "b": 4, "c": 2}, np.array([[2, 0, 1], [0, 0, 0], [1, 3, 1]]))},
    )
    target = outer.target()
    held = Histograms(target, [Part(target.names, np.arange(1.0, target.cells(target.names) + 1))], 500.0)
    return Joined(held, outer, {"a + b + c": Joined(apart, inner, {"a + b": columns})})


MODELS = {
    "histograms": lambda: release("independent"),
    "sparse histograms": lambda: release("field-groups"),
    "graphical": lambda: release(hr.methods.build("mwem", {"size": "0.1"})),
    "expanded": lambda: release("mst"),
    "records": lambda: release("privsyn").model,
    "segments": lambda: release(hr.methods.build("dpsyn", {"segments": "year"})),
    "adjusted": adjusted,
    "evened": evened,
    "joined": joined,
    "tilted": tilted,
    "updated": lambda: release("privsyn:paper"),
    "network": lambda: release("privbayes"),
    "trees": lambda: release(RDT(trees=2, height=2, sweeps=1)),
}


@pytest.mark.parametrize("kind", MODELS)
def test_every_kind_of_model_keeps_the_laws(kind):
    check_model(MODELS[kind])


def test_the_laws_were_tried_on_every_kind():
    """But on linked tables, of which a model has no one domain: tests/laws/test_linked.py has theirs."""
    assert {kind.rpartition(" ")[2] for kind in MODELS} == set(models._KINDS) - {"linked"}


def test_tampering_changes_something_and_is_noticed():
    state = MODELS["histograms"]().state()
    refused = 0
    for altered in tampered(state):
        try:
            read(SCHEMA.encoding().domain, altered)
        except HedgerowError:
            refused += 1
    assert refused > 100


class Made(FromMarginals):
    """A model from elsewhere: one histogram over everything."""

    kind = f"{__name__}:Made"

    def __init__(self, domain, weights, total):
        self.domain, self.weights, self.total = domain, weights, total

    @property
    def inner(self):
        return Histograms(self.domain, [Part(self.domain.names, self.weights)], self.total)

    def marginal(self, marginal):
        return self.inner.marginal(marginal)

    def draw(self, rows, rng):
        return self.inner.draw(rows, rng)

    def state(self):
        return State(self.kind, {"total": self.total}, {"weights": self.weights})

    @classmethod
    def from_state(cls, domain, stored):
        cells = domain.cells(domain.names)
        return cls(domain, stored.weights("weights", (cells,)), stored.total())


class Negative(Made):
    kind = f"{__name__}:Negative"

    def marginal(self, marginal):
        counts = super().marginal(marginal)
        return counts - 0.5 * counts.mean() if counts.size > 1 else counts


class Disagreeing(Made):
    kind = f"{__name__}:Disagreeing"

    def marginal(self, marginal):
        counts = super().marginal(marginal)
        return counts if len(marginal) != 1 else counts[::-1]


class Scaled(Made):
    kind = f"{__name__}:Scaled"

    def marginal(self, marginal):
        return 1.01 * super().marginal(marginal)


class Misanswering(Made):
    kind = f"{__name__}:Misanswering"

    def answers(self, queries):
        answers = zip(queries, super().answers(queries), strict=True)
        return (answer + (query.blocks is not None) for query, answer in answers)


class Biased(Made):
    kind = f"{__name__}:Biased"

    def draw(self, rows, rng):
        drawn = super().draw(rows, rng)
        drawn["a"][: rows // 10] = 0
        return {name: rng.permutation(codes) for name, codes in drawn.items()}


class Sorted(Made):
    kind = f"{__name__}:Sorted"

    def draw(self, rows, rng):
        drawn = super().draw(rows, rng)
        order = np.argsort(drawn["b"], kind="stable")
        return {name: codes[order] for name, codes in drawn.items()}


class Unseeded(Made):
    kind = f"{__name__}:Unseeded"

    def draw(self, rows, rng):
        return super().draw(rows, np.random.default_rng())


class Wide(Made):
    kind = f"{__name__}:Wide"

    def draw(self, rows, rng):
        return {name: codes.astype(np.int64) for name, codes in super().draw(rows, rng).items()}


class Forgetful(Made):
    kind = f"{__name__}:Forgetful"

    def state(self):
        return State(self.kind, {"total": self.total}, {"weights": np.ones_like(self.weights)})


class Opaque(Made):
    kind = f"{__name__}:Opaque"

    def state(self):
        return State(self.kind, {"total": self.total, "domain": self.domain}, {"weights": self.weights})


class Careless(Made):
    kind = f"{__name__}:Careless"

    @classmethod
    def from_state(cls, domain, stored):
        weights = stored._arrays.pop("weights")
        return cls(domain, np.asarray(weights, dtype=np.float64), stored.total())


@pytest.mark.parametrize(
    ("kind", "law"),
    [
        (Negative, "sums of the joint"),
        (Disagreeing, "sums of the joint"),
        (Scaled, "sums to the total"),
        (Misanswering, "as the marginals say"),
        (Biased, "follow the marginals"),
        (Sorted, "random order"),
        (Unseeded, "same generator"),
        (Wide, "fit the domain"),
        (Forgetful, "draws the same rows"),
        (Opaque, "plain JSON"),
        (Careless, "tampered"),
    ],
)
def test_models_that_break_a_law_are_caught(kind, law):
    weights = np.random.default_rng(0).random(24)
    check_model(Made(SMALL, weights, 4000.0))
    with pytest.raises(Violation, match=law):
        check_model(kind(SMALL, weights, 4000.0))


def test_check_method_looks_at_the_model_too():
    class Broken(Independent):
        def run(self, curator, progress) -> Model:
            made = super().run(curator, progress)
            domain = made.domain
            attribute = domain.names[0]
            made.draw = lambda rows, rng, draw=made.draw: {
                **draw(rows, rng),
                attribute: np.zeros(rows, dtype=domain[attribute].dtype),
            }
            return made

    with pytest.raises(Violation, match=r"draws the same rows|drawn rows follow the marginals"):
        check_method(Broken(), count=6)

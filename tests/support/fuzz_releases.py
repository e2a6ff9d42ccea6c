"""A campaign against readers of releases: mutated models in memory, and mutated files.

Every input ends as a ReleaseError or as a release that draws rows of its domain. Anything else is a finding.

    python tests/support/fuzz_releases.py COUNT [SEED]     COUNT inputs, one in fifty of them a file

A finding names the seed and the number of its input; `one(seed, number)` makes it again.
"""

from __future__ import annotations

import copy
import faulthandler
import hashlib
import json
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np

from hedgerow.coded.domain import Attribute, Domain
from hedgerow.errors import ReleaseError
from hedgerow.models import read
from hedgerow.models.model import State, block_rng
from hedgerow.models.stored import Allowance, Stored
from hedgerow.release import archive
from hedgerow.release.bundle import verify
from hedgerow.release.editions import schema_of
from repository import CORPUS

MEMORY, STEPS = 256 << 20, 1 << 38
SECONDS = 60
"""An input that takes longer ends the campaign, with a trace of where it stood."""
FILES = 0.02
NUMBERS = [
    *(0, 1, -1, 2, 3, 7, 63, 64, 65, 255, 256, 1000, 10**9, 2**31 - 1, 2**31, 2**32, 2**53, 2**63 - 1, 2**63, 2**64),
    *(-(2**63), 10**30, 0.0, -0.0, 0.5, 1.5, -1.5, 1e-320, 1e-9, 1e18, 1e300, -1e300, True, False),
]
ODD = [None, "", "x", "model", "kind", "graphical", "os:system", [], {}, [[]], [None], {"kind": "records"}, *NUMBERS]
TYPES = "?bBhHiIlLqQefdgFD"
CELLS = [
    *(np.nan, np.inf, -np.inf, -1, -0.0, 5e-324, 1e-200, 1e-9, 0.25, 1e18, 1e300, 2**31, 2**32 - 1, 2**62, -(2**63)),
    *(0, 1, 2, 255),
]
POTENTIALS = [
    [-np.inf, 0.0],
    [-700.0, 0.0, 700.0],
    [-1e12, 0.0, 1e12],
    [-np.inf, -1e5, -745.0, 0.0, 709.0],
    [5e-324, -0.0],
]
NAMES = ["sex", "region", "age", "education", "income", "town", "hours:heap"]
SIZES = [1, 1, 2, 2, 3, 4, 5, 7, 9, 255, 256, 257, 65_536, 2**21, 2**22 - 1, 2**24]


def seeds() -> list[tuple[Domain, State]]:
    """The models of the corpus, and each of them held by others."""
    found = []
    for path in sorted(CORPUS.glob("*.release")):
        members = archive.read(path)
        about = json.loads(members["model.json"])
        arrays = {name: archive.array_of(members[f"model/{index}.npy"]) for index, name in enumerate(about["arrays"])}
        domain = schema_of(json.loads(members["schema.json"])).encoding().domain
        if about["kind"] != "linked":  # of no one domain: tried as a file
            found.append((domain, State(about["kind"], about["values"], arrays)))
    plain = list(found)
    for domain, state in plain:
        found.append((domain, state.held_by("adjusted", {"marginals": []}, {})))
        found.append((domain, state.held_by("expanded", {"attributes": []}, {})))
    return found


# ---------------------------------------------------------------- mutations


def mutated(rng: random.Random, domain: Domain, state: State) -> tuple[Domain, State]:
    """One to four changes of a model: its values, its arrays, its domain, or how deep it lies."""
    values, arrays = json.loads(json.dumps(state.values)), dict(state.arrays)  # a quick deep copy
    for _ in range(rng.choice([1, 1, 1, 2, 3, 4])):
        turn = rng.random()
        if turn < 0.4:
            change_values(rng, values, list(domain.names))
        elif turn < 0.85:
            change_arrays(rng, arrays)
        elif turn < 0.95:
            domain = change_domain(rng, domain)
        else:
            kind = rng.choice(["expanded", "adjusted"])
            held = {"attributes": []} if kind == "expanded" else {"marginals": []}
            for _ in range(rng.choice([1, 2, 5, 9])):
                state = State(state.kind, values, arrays).held_by(kind, dict(held), {})
                values, arrays = state.values, state.arrays
    kind = state.kind if rng.random() < 0.97 else rng.choice(["trees", "records", "segments", "x", "os:system", ""])
    return domain, State(kind, values, arrays)


def change_values(rng: random.Random, values, names: list[str]) -> None:
    """Somewhere in plain JSON: another value, a missing or a further entry, entries repeated or out of order."""
    node = values
    while isinstance(node, dict | list) and node:
        entries = node.values() if isinstance(node, dict) else node
        inner = [each for each in entries if isinstance(each, dict | list)]
        if not inner or rng.random() < 0.4:
            break
        node = rng.choice(inner)
    if isinstance(node, dict):
        keys = list(node)
        turn = rng.random()
        if turn < 0.2 or not keys:
            node[rng.choice(["x", "total", "first", "model", *names])] = odd(rng)
        elif turn < 0.4:
            del node[rng.choice(keys)]
        else:
            key = rng.choice(keys)
            node[key] = odd(rng, node[rng.choice(keys)], *names, names)
        return
    turn = rng.random()
    if turn < 0.3:
        node.append(odd(rng, *names, names))
    elif turn < 0.4 and 0 < len(node) < 100:
        node[:] = [copy.deepcopy(each) for each in node * rng.choice([2, 64])]
    elif turn < 0.6 and node:
        rng.shuffle(node)
    elif turn < 0.7 and node:
        del node[rng.randrange(len(node))]
    elif node:
        node[rng.randrange(len(node))] = odd(rng, *names)


def odd(rng: random.Random, *others):
    """Something that hardly ever belongs there; a copy, so that no two places share it."""
    return copy.deepcopy(rng.choice([*ODD, *others]))


def change_arrays(rng: random.Random, arrays: dict[str, np.ndarray]) -> None:
    """Some array: other numbers, another type, another shape, another name, or none."""
    if not arrays:
        arrays["x"] = np.zeros(1)
        return
    name = rng.choice(list(arrays))
    array = arrays[name].copy()
    turn = rng.random()
    with np.errstate(all="ignore"):
        if turn < 0.4 and array.size:
            for _ in range(rng.choice([1, 1, 2, 5])):
                spot = rng.randrange(array.size)
                array.reshape(-1)[spot] = as_held(array.dtype, rng.choice([*CELLS, rng.randrange(64)]))
        elif turn < 0.5 and array.size:
            array[...] = as_held(array.dtype, rng.choice(CELLS))
        elif turn < 0.55:
            np.random.default_rng(rng.randrange(1 << 30)).shuffle(array.reshape(-1))
        elif turn < 0.6 and array.dtype.kind == "f" and array.size:
            array = within_range(rng, array)
        elif turn < 0.65:
            array = (array.real if array.dtype.kind == "c" else array).astype(rng.choice(TYPES))
        elif turn < 0.68:
            array = array.astype(array.dtype.newbyteorder(rng.choice("<>")))
        elif turn < 0.83:
            array = reshaped(rng, array)
        elif turn < 0.88:
            del arrays[name]
            return
        elif turn < 0.94:
            array = arrays[rng.choice(list(arrays))]
        else:
            name = rng.choice(["x", "weights0", "cells0", "model.x", "start.x", "counts", "map0", f"model.{name}"])
    arrays[name] = array


def within_range(rng: random.Random, array: np.ndarray) -> np.ndarray:
    """Other numbers that may be allowed: potentials far apart, or shares of the same sum, most of them next to 0."""
    free = np.random.default_rng(rng.randrange(1 << 30))
    if array.min() < 0:
        return free.choice(rng.choice(POTENTIALS), array.shape)
    drawn = free.random(array.shape) ** rng.choice([1, 20, 1000])
    return drawn * (array.sum() / drawn.sum())


def as_held(kind: np.dtype, cell: float) -> np.ndarray:
    """A number as an array of the type would hold it."""
    if kind.kind in "iu":
        whole = 0 if cell != cell else int(np.clip(cell, -(2.0**63), 2.0**64))
        return np.array(min(max(whole, np.iinfo(kind).min), np.iinfo(kind).max), kind)
    return np.array(cell).astype(kind)


def reshaped(rng: random.Random, array: np.ndarray) -> np.ndarray:
    turn = rng.randrange(7)
    flat = array.reshape(-1)
    if turn == 0:
        return flat[: rng.randrange(array.size + 1)]
    if turn == 1:
        return np.concatenate([flat, flat[: rng.randrange(1, 4)]])
    if turn == 2:
        return np.stack([array, array], axis=-1)
    if turn == 3:
        return array[None]
    if turn == 4 and array.size:
        return np.array(flat[0])
    if turn == 5:
        return np.repeat(flat, 2)[::2]
    return array.T


def change_domain(rng: random.Random, domain: Domain) -> Domain:
    """An attribute of another size, one fewer, or one more."""
    attributes = list(domain)
    turn, index = rng.random(), rng.randrange(len(attributes))
    if turn < 0.6:
        attributes[index] = Attribute(attributes[index].name, rng.choice(SIZES), attributes[index].ordered)
    elif turn < 0.8 and len(attributes) > 1:
        del attributes[index]
    elif "new" not in domain:
        attributes.insert(index, Attribute("new", rng.choice(SIZES)))
    return Domain(attributes)


# ---------------------------------------------------------------- inputs


def try_state(rng: random.Random, domain: Domain, state: State) -> str:
    """What became of a state: "refused" or "drawn"."""
    try:
        model = read(domain, Stored(state, Allowance(MEMORY, STEPS)))
    except ReleaseError:
        return "refused"
    rows = rng.choice([0, 1, 2, 17, 60])
    table = model.draw(rows, block_rng(rng.randrange(1000), 0))
    assert list(table) == list(domain.names), "other columns than the domain's"
    for attribute in domain:
        codes = table[attribute.name]
        assert codes.dtype == attribute.dtype, "codes of another type"
        assert codes.shape == (rows,), "another number of rows"
        assert not rows or int(codes.max()) < attribute.size, "codes outside the domain"
    assert 1 <= model.total < 2**63
    return "drawn"


def mutated_file(rng: random.Random, file: bytes, folder: Path) -> Path:
    """A release with something changed: bytes of the file, a member's text or array, or which members there are."""
    path = folder / "mutated.release"
    if rng.random() < 0.25:
        damaged = bytearray(file)
        for _ in range(rng.choice([1, 1, 3, 10])):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        path.write_bytes(bytes(damaged[: rng.choice([len(damaged)] * 9 + [rng.randrange(len(damaged))])]))
        return path
    path.write_bytes(file)
    members = archive.read(path)
    for _ in range(rng.choice([1, 1, 2])):
        name = rng.choice([*members, "certificate.json", "model.json", "schema.json", "answers.json"])
        if name not in members:
            continue
        if rng.random() < 0.1:
            change_members(rng, members, name)
        elif name.endswith(".json"):
            data = json.loads(members[name]) if members[name][:1] in b"{[" else {}
            change_values(rng, data, NAMES)
            members[name] = json.dumps(data, ensure_ascii=False, indent=1).encode()
        else:
            array = {"x": first_arrays(members, name)}
            change_arrays(rng, array)
            changed = next(iter(array.values()), np.zeros(1))
            data = bytearray(archive.array_bytes(changed)) if changed.dtype != object else bytearray(members[name])
            if rng.random() < 0.3:
                data[rng.randrange(min(128, len(data)))] = rng.choice(b" 0123456789,()'|<>fiuOV")
            members[name] = bytes(data)
    mended = {name: hashlib.sha256(data).hexdigest() for name, data in members.items() if name != "manifest.json"}
    if rng.random() < 0.95:
        members["manifest.json"] = json.dumps(mended, indent=1).encode()
    archive.write(path, members)
    return path


def change_members(rng: random.Random, members: dict[str, bytes], name: str) -> None:
    turn = rng.randrange(4)
    if turn == 0:
        del members[name]
    elif turn == 1:
        members[rng.choice(["extra.json", "model/99.npy", "answers/7.npy"])] = members[name]
    elif turn == 2:
        members[name] = members[name] + b" "
    else:
        members[name] = members[rng.choice(list(members))]


def first_arrays(members: dict[str, bytes], name: str) -> np.ndarray:
    """The array of a member; of one that is broken already, any."""
    try:
        return archive.array_of(members[name])
    except ReleaseError:
        return np.zeros(3)


def try_file(path: Path) -> str:
    try:
        release, _ = verify(path, memory=1 << 30)
    except ReleaseError:
        return "refused"
    drawn = release.sample(20, seed=1)
    if release.schema.linked is None:
        assert drawn.schema == release.encoding.arrow_schema
    else:
        assert list(drawn) == list(release.schema.linked.names)
    assert 1 <= release.estimated_rows <= 1 << 40
    assert release.certificate.statements()
    return "drawn"


class Campaign:
    """Inputs by number: the same seed and number give the same input."""

    def __init__(self, seed: int, folder: Path):
        self.seed, self.folder = seed, folder
        self.states = seeds()
        self.plain = self.states[: len(self.states) // 3]
        self.files = [path.read_bytes() for path in sorted(CORPUS.glob("*.release"))]

    def one(self, number: int, files: float = FILES) -> str:
        """Make an input and say what became of it."""
        rng = random.Random(f"{self.seed} {number}")
        if rng.random() < files:
            return "file " + try_file(mutated_file(rng, rng.choice(self.files), self.folder))
        domain, state = rng.choice(self.states if rng.random() < 0.3 else self.plain)
        domain, state = mutated(rng, domain, state)
        return f"{state.kind if state.kind.isalpha() else 'other'} " + try_state(rng, domain, state)


def run(count: int, seed: int, files: float = FILES, seconds: int = SECONDS) -> tuple[Counter[str], list[str]]:
    """What became of so many inputs, and the findings."""
    came: Counter[str] = Counter()
    findings = []
    with tempfile.TemporaryDirectory() as folder:
        campaign = Campaign(seed, Path(folder))
        for number in range(count):
            faulthandler.dump_traceback_later(seconds, exit=True)
            try:
                came[campaign.one(number, files)] += 1
            except Exception as problem:
                findings.append(f"seed {seed}, input {number}: {type(problem).__name__}: {problem}")
    faulthandler.cancel_dump_traceback_later()
    return came, findings


def main(count: int, seed: int = 0) -> int:
    """Say what came of a campaign; the number of findings."""
    begun = time.monotonic()
    came, findings = run(count, seed)
    for what, times in sorted(came.items()):
        print(f"{times:>9,} {what}")
    print(f"{count:,} inputs in {time.monotonic() - begun:,.0f} s, {len(findings)} findings")
    for finding in findings[:50]:
        print(finding)
    return len(findings)


if __name__ == "__main__":
    faulthandler.enable()
    sys.exit(min(1, main(*map(int, sys.argv[1:]))))

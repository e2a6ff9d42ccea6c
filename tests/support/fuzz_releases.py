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
from hedgerow.models.model import State, block_coins
from hedgerow.models.stored import Allowance, Stored
from hedgerow.release import archive
from hedgerow.release.bundle import verify
from hedgerow.schema import Schema
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
        arrays = {name: archive.array_of(members[f"model/{place}.npy"]) for place, name in enumerate(about["arrays"])}
        domain = Schema.from_dict(json.loads(members["schema.json"])).encoding().domain
        found.append((domain, State(about["kind"], about["values"], arrays)))
    plain = list(found)
    for domain, state in plain:
        found.append((domain, state.held_by("adjusted", {"marginals": []}, {})))
        found.append((domain, state.held_by("expanded", {"attributes": []}, {})))
    return found


# ---------------------------------------------------------------- mutations


def mutated(coins: random.Random, domain: Domain, state: State) -> tuple[Domain, State]:
    """One to four changes of a model: its values, its arrays, its domain, or how deep it lies."""
    values, arrays = json.loads(json.dumps(state.values)), dict(state.arrays)  # a quick deep copy
    for _ in range(coins.choice([1, 1, 1, 2, 3, 4])):
        turn = coins.random()
        if turn < 0.4:
            change_values(coins, values, list(domain.names))
        elif turn < 0.85:
            change_arrays(coins, arrays)
        elif turn < 0.95:
            domain = change_domain(coins, domain)
        else:
            kind = coins.choice(["expanded", "adjusted"])
            held = {"attributes": []} if kind == "expanded" else {"marginals": []}
            for _ in range(coins.choice([1, 2, 5, 9])):
                state = State(state.kind, values, arrays).held_by(kind, dict(held), {})
                values, arrays = state.values, state.arrays
    kind = state.kind if coins.random() < 0.97 else coins.choice(["trees", "records", "segments", "x", "os:system", ""])
    return domain, State(kind, values, arrays)


def change_values(coins: random.Random, values, names: list[str]) -> None:
    """Somewhere in plain JSON: another value, a missing or a further entry, entries repeated or out of order."""
    place = values
    while isinstance(place, dict | list) and place:
        entries = place.values() if isinstance(place, dict) else place
        inner = [each for each in entries if isinstance(each, dict | list)]
        if not inner or coins.random() < 0.4:
            break
        place = coins.choice(inner)
    if isinstance(place, dict):
        keys = list(place)
        turn = coins.random()
        if turn < 0.2 or not keys:
            place[coins.choice(["x", "total", "first", "model", *names])] = odd(coins)
        elif turn < 0.4:
            del place[coins.choice(keys)]
        else:
            key = coins.choice(keys)
            place[key] = odd(coins, place[coins.choice(keys)], *names, names)
        return
    turn = coins.random()
    if turn < 0.3:
        place.append(odd(coins, *names, names))
    elif turn < 0.4 and 0 < len(place) < 100:
        place[:] = [copy.deepcopy(each) for each in place * coins.choice([2, 64])]
    elif turn < 0.6 and place:
        coins.shuffle(place)
    elif turn < 0.7 and place:
        del place[coins.randrange(len(place))]
    elif place:
        place[coins.randrange(len(place))] = odd(coins, *names)


def odd(coins: random.Random, *others):
    """Something that hardly ever belongs there; a copy, so that no two places share it."""
    return copy.deepcopy(coins.choice([*ODD, *others]))


def change_arrays(coins: random.Random, arrays: dict[str, np.ndarray]) -> None:
    """Some array: other numbers, another type, another shape, another name, or none."""
    if not arrays:
        arrays["x"] = np.zeros(1)
        return
    name = coins.choice(list(arrays))
    array = arrays[name].copy()
    turn = coins.random()
    with np.errstate(all="ignore"):
        if turn < 0.4 and array.size:
            for _ in range(coins.choice([1, 1, 2, 5])):
                spot = coins.randrange(array.size)
                array.reshape(-1)[spot] = as_held(array.dtype, coins.choice([*CELLS, coins.randrange(64)]))
        elif turn < 0.5 and array.size:
            array[...] = as_held(array.dtype, coins.choice(CELLS))
        elif turn < 0.55:
            np.random.default_rng(coins.randrange(1 << 30)).shuffle(array.reshape(-1))
        elif turn < 0.6 and array.dtype.kind == "f" and array.size:
            array = within_range(coins, array)
        elif turn < 0.65:
            array = (array.real if array.dtype.kind == "c" else array).astype(coins.choice(TYPES))
        elif turn < 0.68:
            array = array.astype(array.dtype.newbyteorder(coins.choice("<>")))
        elif turn < 0.83:
            array = reshaped(coins, array)
        elif turn < 0.88:
            del arrays[name]
            return
        elif turn < 0.94:
            array = arrays[coins.choice(list(arrays))]
        else:
            name = coins.choice(["x", "weights0", "cells0", "model.x", "start.x", "counts", "map0", f"model.{name}"])
    arrays[name] = array


def within_range(coins: random.Random, array: np.ndarray) -> np.ndarray:
    """Other numbers that may be allowed: potentials far apart, or shares of the same sum, most of them next to 0."""
    free = np.random.default_rng(coins.randrange(1 << 30))
    if array.min() < 0:
        return free.choice(coins.choice(POTENTIALS), array.shape)
    drawn = free.random(array.shape) ** coins.choice([1, 20, 1000])
    return drawn * (array.sum() / drawn.sum())


def as_held(kind: np.dtype, cell: float) -> np.ndarray:
    """A number as an array of the type would hold it."""
    if kind.kind in "iu":
        whole = 0 if cell != cell else int(np.clip(cell, -(2.0**63), 2.0**64))
        return np.array(min(max(whole, np.iinfo(kind).min), np.iinfo(kind).max), kind)
    return np.array(cell).astype(kind)


def reshaped(coins: random.Random, array: np.ndarray) -> np.ndarray:
    turn = coins.randrange(7)
    flat = array.reshape(-1)
    if turn == 0:
        return flat[: coins.randrange(array.size + 1)]
    if turn == 1:
        return np.concatenate([flat, flat[: coins.randrange(1, 4)]])
    if turn == 2:
        return np.stack([array, array], axis=-1)
    if turn == 3:
        return array[None]
    if turn == 4 and array.size:
        return np.array(flat[0])
    if turn == 5:
        return np.repeat(flat, 2)[::2]
    return array.T


def change_domain(coins: random.Random, domain: Domain) -> Domain:
    """An attribute of another size, one fewer, or one more."""
    attributes = list(domain)
    turn, place = coins.random(), coins.randrange(len(attributes))
    if turn < 0.6:
        attributes[place] = Attribute(attributes[place].name, coins.choice(SIZES), attributes[place].line)
    elif turn < 0.8 and len(attributes) > 1:
        del attributes[place]
    elif "new" not in domain:
        attributes.insert(place, Attribute("new", coins.choice(SIZES)))
    return Domain(attributes)


# ---------------------------------------------------------------- inputs


def try_state(coins: random.Random, domain: Domain, state: State) -> str:
    """What became of a state: "refused" or "drawn"."""
    try:
        model = read(domain, Stored(state, Allowance(MEMORY, STEPS)))
    except ReleaseError:
        return "refused"
    rows = coins.choice([0, 1, 2, 17, 60])
    table = model.draw(rows, block_coins(coins.randrange(1000), 0))
    assert list(table) == list(domain.names), "other columns than the domain's"
    for attribute in domain:
        codes = table[attribute.name]
        assert codes.dtype == attribute.dtype, "codes of another type"
        assert codes.shape == (rows,), "another number of rows"
        assert not rows or int(codes.max()) < attribute.size, "codes outside the domain"
    assert 1 <= model.total < 2**63
    return "drawn"


def mutated_file(coins: random.Random, file: bytes, folder: Path) -> Path:
    """A release with something changed: bytes of the file, a member's text or array, or which members there are."""
    path = folder / "mutated.release"
    if coins.random() < 0.25:
        damaged = bytearray(file)
        for _ in range(coins.choice([1, 1, 3, 10])):
            damaged[coins.randrange(len(damaged))] = coins.randrange(256)
        path.write_bytes(bytes(damaged[: coins.choice([len(damaged)] * 9 + [coins.randrange(len(damaged))])]))
        return path
    path.write_bytes(file)
    members = archive.read(path)
    for _ in range(coins.choice([1, 1, 2])):
        name = coins.choice([*members, "certificate.json", "model.json", "schema.json", "answers.json"])
        if name not in members:
            continue
        if coins.random() < 0.1:
            change_members(coins, members, name)
        elif name.endswith(".json"):
            data = json.loads(members[name]) if members[name][:1] in b"{[" else {}
            change_values(coins, data, NAMES)
            members[name] = json.dumps(data, ensure_ascii=False, indent=1).encode()
        else:
            array = {"x": first_arrays(members, name)}
            change_arrays(coins, array)
            changed = next(iter(array.values()), np.zeros(1))
            data = bytearray(archive.array_bytes(changed)) if changed.dtype != object else bytearray(members[name])
            if coins.random() < 0.3:
                data[coins.randrange(min(128, len(data)))] = coins.choice(b" 0123456789,()'|<>fiuOV")
            members[name] = bytes(data)
    mended = {name: hashlib.sha256(data).hexdigest() for name, data in members.items() if name != "manifest.json"}
    if coins.random() < 0.95:
        members["manifest.json"] = json.dumps(mended, indent=1).encode()
    archive.write(path, members)
    return path


def change_members(coins: random.Random, members: dict[str, bytes], name: str) -> None:
    turn = coins.randrange(4)
    if turn == 0:
        del members[name]
    elif turn == 1:
        members[coins.choice(["extra.json", "model/99.npy", "answers/7.npy"])] = members[name]
    elif turn == 2:
        members[name] = members[name] + b" "
    else:
        members[name] = members[coins.choice(list(members))]


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
    assert release.sample(20, seed=1).schema == release.encoding.arrow_schema
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
        coins = random.Random(f"{self.seed} {number}")
        if coins.random() < files:
            return "file " + try_file(mutated_file(coins, coins.choice(self.files), self.folder))
        domain, state = coins.choice(self.states if coins.random() < 0.3 else self.plain)
        domain, state = mutated(coins, domain, state)
        return f"{state.kind if state.kind.isalpha() else 'other'} " + try_state(coins, domain, state)


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

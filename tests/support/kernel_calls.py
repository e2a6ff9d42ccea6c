"""Random calls of the compiled modules: arguments that fit, of which some are then replaced by hostile ones.

A call either does what it says or raises an ordinary exception; nothing else may happen. As a program it makes many
calls and says how they ended: python tests/support/kernel_calls.py CALLS [FIRST]
"""

import math
import sys
import warnings
from collections import Counter
from contextlib import suppress

import numpy as np

from hedgerow import _count, _model, _records

CLEAN = (ValueError, TypeError, IndexError, OverflowError, MemoryError, RuntimeError)
"""What an entry point may raise; RuntimeError is for a draw from a network whose cells have no weight."""

NUMBERS = [-(1 << 63), -1, 0, 1, 2, 3, 7, 255, 256, 1 << 16, (1 << 31) - 1, 1 << 31, 1 << 32, (1 << 41) + 1, 1 << 62]
NUMBERS += [(1 << 63) - 1, (1 << 64) - 1, 1 << 64]
FLOATS = [0.0, -1.0, 0.5, 1.0, 2.0, 1e300, -1e300, math.nan, math.inf, -math.inf, 5e-324]
TYPES = ["u1", "u2", "u4", "u8", "i1", "i4", "i8", "f4", "f8", ">f8", ">i4", "c16", "?", "O", "M8[s]"]


def too_many(cells):
    """Whether so many cells would be allocated, and are more than a test should take."""
    return isinstance(cells, int) and 1 << 22 <= cells < 1 << 41


class Coins:
    """Choices of one call."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def one(self, things):
        return things[int(self.rng.integers(len(things)))]

    def below(self, bound):
        return int(self.rng.integers(bound))

    def chance(self, share):
        return self.rng.random() < share

    def subset(self, count):
        return [index for index in range(count) if self.chance(0.5)]


def hostile_array(array, coins):
    """Something else in the place of an array."""
    what = coins.below(12)
    if what == 0:
        return array.astype(coins.one(TYPES))
    if what == 1:
        return np.repeat(array, 2)[::2]
    if what == 2:
        return array[::-1]
    if what == 3:
        room = np.zeros(array.nbytes + 1, dtype=np.uint8)[1:].view(array.dtype)
        room[:] = array
        return room
    if what == 4:
        array = array.copy()
        array.flags.writeable = False
        return array
    if what == 5:
        return array.reshape(1, -1)
    if what == 6:
        return array[: coins.below(len(array) + 1)]
    if what == 7:
        return np.append(array, array[:1])
    if what == 8 and len(array):
        array = array.copy()
        values = FLOATS if array.dtype.kind == "f" else [number for number in NUMBERS if fits(number, array.dtype)]
        array[coins.below(len(array))] = coins.one(values)
        return array
    if what == 9:
        return array.tolist()
    if what == 10:
        return np.zeros(0, dtype=array.dtype)
    return array.reshape(()) if array.size == 1 else None


def fits(number, dtype):
    return dtype.kind in "ui" and np.iinfo(dtype).min <= number <= np.iinfo(dtype).max


def hostile(value, coins):
    """Another value of much the same kind, at any depth."""
    if isinstance(value, np.ndarray):
        return hostile_array(value, coins)
    if isinstance(value, bool) or value is None:
        return coins.one([True, False, None, 0])
    if isinstance(value, int):
        return coins.one(NUMBERS) if coins.chance(0.95) else coins.one([None, 1.5, "1", math.nan, [value]])
    if isinstance(value, float):
        return coins.one(FLOATS)
    if isinstance(value, list | tuple):
        return hostile_list(list(value), coins)
    return coins.one([None, 0, "", object()])


def hostile_list(values, coins):
    if values and coins.chance(0.6):
        index = coins.below(len(values))
        values[index] = hostile(values[index], coins)
        return values
    what = coins.below(5)
    if what == 0:
        return values[:-1]
    if what == 1:
        return values + values[-1:]
    if what == 2:
        return values[::-1]
    if what == 3 and len(values) > 1:  # the same object twice
        values[coins.below(len(values))] = values[coins.below(len(values))]
    return values


def disturbed(arguments, coins, spared=()):
    """The arguments with none, one or a few of them replaced; `spared` ones say how much work to do."""
    arguments = list(arguments)
    for _ in range(coins.one([0, 0, 0, 1, 1, 2])):
        index = coins.below(len(arguments))
        if index not in spared:
            arguments[index] = hostile(arguments[index], coins)
    return arguments


def sizes_of(coins, most=5):
    return [1 + coins.below(6) for _ in range(coins.below(most) + 1)]


def words(coins):
    return [int(word) for word in coins.rng.integers(1, 1 << 63, 4)]


def codes(size, rows, coins):
    dtype = np.uint8 if size <= 256 else np.uint16 if size <= 1 << 16 else np.uint32
    return coins.rng.integers(0, size, rows).astype(dtype)


def count_marginal(coins):
    sizes, rows = sizes_of(coins), coins.one([0, 1, 5, 300])
    columns = [codes(size, rows, coins) for size in sizes]
    indices = coins.subset(len(sizes))
    shape, levels = [], []
    for index in indices:
        level = coins.rng.integers(0, 3, sizes[index]) if coins.chance(0.4) else None
        shape.append(sizes[index] if level is None else 3)
        levels.append(level)
    cells = math.prod(shape)
    blocks = coins.rng.integers(-1, 4, cells) if coins.chance(0.4) else None
    query = _count.Marginal(*disturbed([indices, shape, levels, blocks], coins))
    dense = coins.one([0, 1, 100, 1 << 20, 1 << 62])
    _count.count(*disturbed([columns, rows, [query], dense, 1 + coins.below(4)], coins, spared=(3,)))


def walk_tree(coins):
    sizes, rows = sizes_of(coins), coins.one([0, 1, 5, 600])
    columns = [codes(size, rows, coins) for size in sizes]
    split, child, leaves, nodes, node = [], [], 0, 1, 0
    while node < nodes:
        attribute = coins.below(len(sizes) + 1) - 1
        if attribute >= 0 and nodes + sizes[attribute] <= 60:
            split, child, nodes = [*split, attribute], [*child, nodes], nodes + sizes[attribute]
        else:
            split, child, leaves = [*split, -1], [*child, leaves], leaves + 1
        node += 1
    label = coins.one([None, *range(len(sizes))])
    label_size = 1 if label is None else sizes[label]
    arrays = np.array(split, dtype=np.int32), np.array(child, dtype=np.int64)
    tree = _count.Tree(*disturbed([list(range(len(sizes))), sizes, *arrays, leaves, label, label_size], coins))
    _count.find_leaves(*disturbed([columns, rows, tree], coins))
    _count.count(*disturbed([columns, rows, [tree], coins.one([1, 1 << 10]), 2], coins))


def claimed(sizes, tables):
    """Cells that these tables would take, in numbers without a limit; None where an argument makes no sense."""
    try:
        return sum(math.prod(sizes[axis] for axis in axes) for axes in tables)
    except (TypeError, IndexError):
        return None


def elimination(sizes, leaves, coins):
    """Buckets of a random elimination order, as models.graphical.junction plans them."""
    tables, buckets = dict(enumerate(leaves)), []
    for attribute in coins.rng.permutation(len(sizes)).tolist():
        inputs = [number for number, axes in tables.items() if attribute in axes]
        scope = sorted({axis for number in inputs for axis in tables[number]})
        message = [axis for axis in scope if axis != attribute]
        tables = {number: axes for number, axes in tables.items() if attribute not in axes}
        tables[len(leaves) + len(buckets)] = message
        buckets.append((inputs, message))
    return buckets


def network(coins):
    sizes = sizes_of(coins)
    leaves = [axes for axes in (coins.subset(len(sizes)) for _ in range(3)) if axes]
    leaves += [[axis] for axis in range(len(sizes)) if not any(axis in leaf for leaf in leaves)]
    arguments = disturbed([sizes, leaves, elimination(sizes, leaves, coins), []], coins)
    cells = claimed(arguments[0], [*(arguments[1] or []), *(bucket[1] for bucket in arguments[2] or [])])
    if cells is None or too_many(cells):
        cells = claimed(sizes, leaves)
        arguments = [sizes, leaves, elimination(sizes, leaves, coins), []]
    made = _model.Network(*arguments)
    cells = claimed(arguments[0], arguments[1])
    potentials = coins.rng.normal(0, coins.one([1, 400]), cells)
    marginals = np.empty(cells)
    if coins.chance(0.9):
        made.calibrate(*disturbed([potentials, marginals], coins))
    with suppress(*CLEAN):
        coins.one([made.value, made.ratio])(coins.one(NUMBERS)).sum()
    rows = coins.one([0, 1, 7, 200])
    columns = [codes(size, rows, coins) for size in arguments[0]]
    made.draw(*disturbed([columns, words(coins), coins.chance(0.5)], coins))


def blocks(coins):
    sizes = sizes_of(coins)
    leaves = [coins.subset(len(sizes)) for _ in range(3)]
    wanted = []
    for _ in range(coins.below(4)):
        leaf = coins.below(3)
        wanted.append((leaf, [axis for axis in leaves[leaf] if coins.chance(0.7)]))
    overlaps = sorted({tuple(sorted(set(a[1]) & set(b[1]))) for a in wanted for b in wanted}, key=len)
    precisions = [coins.one([0.0, 0.5, 3.0]) for _ in wanted]
    arguments = disturbed([sizes, leaves, wanted, precisions, [list(axes) for axes in overlaps]], coins)
    if too_many(claimed(arguments[0], arguments[1])):
        return
    made = _model.Marginals(*arguments)
    leaf_cells, cells = claimed(sizes, leaves), claimed(sizes, [axes for _, axes in wanted])
    made.gather(*disturbed([coins.rng.random(leaf_cells), np.empty(cells)], coins))
    made.project(*disturbed([coins.rng.random(cells)], coins))
    made.scatter(*disturbed([coins.rng.random(cells), np.empty(leaf_cells)], coins))


def contract(coins):
    sizes = sizes_of(coins)
    axes = [coins.subset(len(sizes)) for _ in range(coins.below(4))]
    kept = coins.subset(len(sizes))
    inputs = [coins.rng.random(claimed(sizes, [each])) for each in axes]
    out = np.empty(claimed(sizes, [kept]))
    _model.contract(*disturbed([sizes, inputs, axes, kept, out, coins.chance(0.5)], coins))


def orders(coins):
    sizes = [float(size) for size in sizes_of(coins, 9)]
    cliques = [coins.subset(len(sizes)) for _ in range(4)]
    _model.elimination_order(*disturbed([sizes, cliques, coins.subset(len(sizes)), 1 + coins.below(4)], coins, (3,)))
    _model.junction_cells(*disturbed([sizes, cliques, [coins.subset(len(sizes))]], coins))


def partitions(coins):
    shape = sizes_of(coins, 3)
    counts = coins.rng.integers(0, 50, math.prod(shape)).astype(float)
    _model.merge_sequence(*disturbed([np.sort(counts)], coins))
    made = _model.split_sequence(*disturbed([counts, shape, coins.below(30), coins.chance(0.5)], coins))
    made.label(*disturbed([1 + coins.below(3), np.empty(len(counts), dtype=np.int64)], coins))


def vectors(coins):
    count = coins.one([0, 1, 9, 3000])
    pairs = [coins.rng.random(count).astype(np.float32) for _ in range(coins.below(4))]
    _model.inner_products(*disturbed([pairs, coins.rng.random(count)], coins))
    _model.add_combination(*disturbed([[0.5] * len(pairs), pairs, coins.rng.random(count)], coins))


def targets(sizes, coins):
    marginals = [coins.subset(len(sizes)) for _ in range(coins.below(4))]
    shares = [coins.rng.dirichlet(np.ones(claimed(sizes, [marginal]))) for marginal in marginals]
    return marginals, shares


def update(coins):
    sizes, rows = sizes_of(coins), coins.one([0, 1, 9, 200])
    columns = [codes(size, rows, coins).astype(np.uint32) for size in sizes]
    arguments = [columns, sizes, *targets(sizes, coins), coins.below(4), 0.84, 1, coins.below(3), words(coins)]
    _records.update(*disturbed(arguments, coins, spared=(4, 7)))


def selection(coins):
    sizes, rows = sizes_of(coins), coins.one([0, 1, 9, 200])
    columns = [codes(size, rows, coins).astype(np.uint32) for size in sizes]
    marginals, shares = targets(sizes, coins)
    made = _records.Selection(*disturbed([columns, sizes, marginals, shares, [1.0] * len(marginals)], coins))
    first = coins.below(rows + 1)
    chosen = np.zeros(coins.below(first + 1), dtype=np.int64)
    made.choose(*disturbed([chosen, first, coins.below(100), 3, words(coins)], coins, spared=(3,)))
    assert np.all((chosen >= 0) & (chosen < max(rows, 1))) or not rows


CALLS = [count_marginal, walk_tree, network, blocks, contract, orders, partitions, vectors, update, selection]


def call(seed):
    """One call; how it ended."""
    coins = Coins(seed)
    made = CALLS[seed % len(CALLS)]
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the numbers and types that are tried here
            made(coins)
    except CLEAN as refused:
        return made.__name__, type(refused).__name__
    return made.__name__, "done"


if __name__ == "__main__":
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    ended = Counter(call(seed) for seed in range(first, first + int(sys.argv[1])))
    for name in CALLS:
        print(name.__name__, {how: times for (who, how), times in sorted(ended.items()) if who == name.__name__})

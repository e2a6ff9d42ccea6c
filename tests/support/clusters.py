"""A cluster in one process: what workers do, without Spark. Partitions can be lost, made anew, and counted twice."""

import pyarrow as pa
import pyarrow.compute as pc

from hedgerow.private.engines.cluster.engine import ClusterEngine


class Frame:
    """Partitions that are computed whenever they are read; those that are kept, once."""

    def __init__(self, parts):
        self.parts = parts

    def kept(self):
        return Kept([_Once(part) for part in self.parts])

    def table(self):
        return pa.Table.from_batches([batch for part in self.parts for batch in part()])


class Kept(Frame):
    def lose(self):
        """As if the worker that held them had gone: whoever reads them next makes them anew."""
        for part in self.parts:
            part.held = None


class _Once:
    def __init__(self, compute):
        self.compute, self.held = compute, None

    def __call__(self):
        if self.held is None:
            self.held = self.compute()
        return self.held


class OneProcess:
    """What `ClusterEngine` asks of a cluster, for a table in memory in so many partitions."""

    name = "a cluster"
    what = "the table in a cluster"
    has_kernels = True

    def __init__(self, table, parts=3):
        self.table, self.number = table, parts
        self.buckets = 2 * parts
        self.kept_frames = []

    def header(self):
        return tuple(self.table.column_names)

    def rows(self, columns, person=None):
        def part(number):
            each = -(-len(self.table) // self.number)
            return lambda: self.table.select(columns).slice(number * each, each).to_batches(max_chunksize=100)

        return Frame([part(number) for number in range(self.number)]), self.table.select(columns).schema

    def mapped(self, frame, work, columns):
        def part(number, read):
            return lambda: [batch.cast(columns) for batch in work(number, iter(read()))]

        return Frame([part(number, read) for number, read in enumerate(frame.parts)])

    def shuffled(self, frame, column, tasks=None):
        tasks = tasks or self.number

        def part(number):
            def read():
                found = [batch for each in frame.parts for batch in each()]
                return [
                    batch.filter(pa.array([(value or 0) % tasks == number for value in batch[column].to_pylist()]))
                    for batch in found
                ][::-1]  # in whatever order they come

            return read

        return Frame([part(number) for number in range(tasks)])

    def selected(self, frame, columns):
        return Frame([lambda read=read: [batch.select(list(columns)) for batch in read()] for read in frame.parts])

    def between(self, frame, column, first, last):
        def some(batch):
            return batch.filter(pc.and_(pc.greater_equal(batch[column], first), pc.less_equal(batch[column], last)))

        return Frame([lambda read=read: [some(batch) for batch in read()] for read in frame.parts])

    def summed(self, frame, most):
        found = self.collected(frame)
        if not len(found):
            return pa.table({"value": pa.array([], pa.binary()), "fault": [], "people": []})
        found = found.group_by(["value", "fault"]).aggregate([("people", "sum")])
        return found.rename_columns(["value", "fault", "people"]).slice(0, most)

    def kept(self, frame):
        self.kept_frames.append(frame.kept())
        return self.kept_frames[-1]

    def dropped(self, frame):
        self.kept_frames.remove(frame)

    def counted(self, frame):
        return self.collected(frame)

    def collected(self, frame):
        batches = [batch for part in frame.parts for batch in part()]
        return pa.Table.from_batches(batches) if batches else _Nothing()


class _Nothing:
    """No batch came, so not even its columns are known."""

    def __getitem__(self, name):
        return pa.chunked_array([[]], pa.string() if name == "fault" else pa.int64())

    def __len__(self):
        return 0

    def to_batches(self):
        return []


class OneProcessEngine(ClusterEngine):
    """One as `check_engine` wants it, which looks at how engines are opened."""

    def __init__(self, location, *, bounding_key=None, memory=4 << 30):
        super().__init__(location, bounding_key=bounding_key, memory=memory)

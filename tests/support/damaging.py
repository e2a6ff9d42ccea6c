"""Tables of every format, damaged and read: a program of its own, because what it looks for is a dead process.

    python damaging.py SEED CASES FOLDER [apart]

With `apart` the formats are those that others' libraries read in a process of their own, which takes longer.
Every case prints its number before it is read, so that the last number of a process that died tells which one it was.
"""

import csv
import datetime
import decimal
import gzip
import io
import os
import random
import resource
import sys
from pathlib import Path

import pandas
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq

from hedgerow.errors import InputError
from hedgerow.private.engines import open_engine
from hedgerow.schema import Schema

SCHEMA = Schema.parse("""
person: id
max_rows_per_person: 2
columns:
  text: {type: category, values: [aa, bb, cc], missing: true}
  kind: {type: category, values: [x, y], other: true}
  view: {type: category, values: [one, two], other: true}
  bytes: {type: category, values: [one, two], other: true}
  size: {type: integer, min: 0, max: 20, missing: true}
  rate: {type: number, min: 0, max: 20, bins: 4, missing: true}
  when: {type: date, min: 2020-01-01, max: 2020-12-31, step: month}
  flag: {type: boolean}
  paid: {type: number, min: 0, max: 20, bins: 4}
  code: {type: code, size: 5}
""")
ROWS = 120
ODD = (b"\x00", b"\x7f", b"\x80", b"\xff", b'"', b",", b"\n")
SIZES = (0, 1, -1, 2**31 - 1, -(2**31), 7, 300, 10**6)


def whole(rng):
    """A table with a column of every sort that is laid out differently."""

    def some(values):
        return [rng.choice([None, *values]) for _ in range(ROWS)]

    return pa.table(
        {
            "id": pa.array([f"p{rng.randrange(40)}" for _ in range(ROWS)]),
            "text": pa.array(some(["aa", "bb", "cc", "dd"]), pa.large_string()),
            "kind": pa.array(some(["x", "y", "z"])).dictionary_encode(),
            "view": pa.array(some(["one", "two", "longer than twelve letters"]), pa.string_view()),
            "bytes": pa.array(some([b"one", b"two", b"\xff"]), pa.binary()),
            "size": pa.array(some(range(25))),
            "rate": pa.array(some([1.5, 2.5, 7.0])),
            "when": pa.array(some([datetime.date(2020, 2, 3)])),
            "flag": pa.array(some([True, False])),
            "paid": pa.array(some([decimal.Decimal("1.50"), decimal.Decimal("7.25")]), pa.decimal128(10, 2)),
            "code": pa.array([rng.randrange(5) for _ in range(ROWS)]),
        }
    )


def ipc(open_writer, compression):
    def write(table, path):
        options = pa.ipc.IpcWriteOptions(compression=compression, emit_dictionary_deltas=True)
        with open_writer(path, table.schema, options=options) as writer:
            writer.write_table(table, max_chunksize=50)

    return write


def parquet(compression, version, dictionary):
    def write(table, path):
        plain = table.set_column(3, "view", table["view"].cast(pa.string()))
        how = {"compression": compression, "data_page_version": version, "use_dictionary": dictionary}
        pq.write_table(plain, path, row_group_size=50, write_page_checksum=False, **how)

    return write


def text(pack=bytes, delimiter=",", encoding="utf-8"):
    def write(table, path):
        written = io.StringIO()
        rows = csv.writer(written, delimiter=delimiter)
        rows.writerow(table.column_names)
        rows.writerows(zip(*(column.to_pylist() for column in table.columns), strict=True))
        Path(path).write_bytes(pack(written.getvalue().encode(encoding)))

    return write


def frame(table):
    """What a statistical package can hold of it."""
    plain = {name: [_plain(value) for value in table[name].to_pylist()] for name in table.column_names}
    return pandas.DataFrame(plain)


def _plain(value):
    return (
        float(value) if isinstance(value, decimal.Decimal | bool) else str(value) if isinstance(value, bytes) else value
    )


def workbook(table, path):
    import openpyxl

    book = openpyxl.Workbook()
    columns = [[_plain(value) for value in column.to_pylist()] for column in table.columns]
    for row in [table.column_names, *zip(*columns, strict=True)]:
        book.active.append(list(row))
    book.save(path)


def spss(table, path):
    import pyreadstat

    pyreadstat.write_sav(frame(table), str(path))


def stata(table, path):
    import pyreadstat

    pyreadstat.write_dta(frame(table), str(path))


FORMATS = {
    "file.arrow": ipc(pa.ipc.new_file, None),
    "zstd.arrow": ipc(pa.ipc.new_file, "zstd"),
    "stream.arrow": ipc(pa.ipc.new_stream, None),
    "lz4.arrow": ipc(pa.ipc.new_stream, "lz4"),
    "t.feather": lambda table, path: pyarrow.feather.write_feather(table, path, compression="lz4"),
    "snappy.parquet": parquet("snappy", "1.0", True),
    "zstd.parquet": parquet("zstd", "2.0", False),
    "plain.parquet": parquet("none", "1.0", True),
    "t.csv": text(),
    "t.csv.gz": text(gzip.compress),
    "t.tsv.zst": text(lambda content: pa.compress(content, "zstd", asbytes=True), "\t"),
    "utf16.txt": text(delimiter=";", encoding="utf-16"),
}
APART = {"t.xlsx": workbook, "t.sav": spss, "t.dta": stata}
FILES = {"utf16.txt": {"delimiter": ";", "encoding": "utf-16", "decimal": ","}}


def damaged(content, rng):
    """A few bits flipped, a stretch overwritten or copied over another, sizes replaced, or the end cut off."""
    content = bytearray(content)
    how = rng.randrange(10)
    if how < 5:
        for _ in range(rng.randint(1, 6)):
            content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    elif how < 6:
        begin, length = rng.randrange(len(content) - 8), rng.randint(1, 8)
        content[begin : begin + length] = rng.choice(ODD) * length
    elif how < 7:
        source, begin, length = rng.randrange(len(content)), rng.randrange(len(content)), rng.randint(1, 64)
        content[begin : begin + length] = content[source : source + length]
    elif how < 9:
        for _ in range(rng.randint(1, 3)):
            begin = 4 * rng.randrange(len(content) // 4 - 1)
            content[begin : begin + 4] = rng.choice(SIZES).to_bytes(4, "little", signed=True)
    else:
        del content[rng.randrange(len(content)) :]
    return bytes(content)


def read(path):
    """Everything that a run does before it pays."""
    schema = SCHEMA.with_file(FILES.get(Path(path).name, {}))
    engine = open_engine(path, schema.written, bounding_key=b"a key of 16 byte")
    schema.check_header(engine.header(), f'the table "{path}"')
    engine.prepare(schema.encoding())


def main(seed, cases, folder, formats):
    if "LD_PRELOAD" not in os.environ:  # a sanitizer keeps its shadow in terabytes of addresses
        resource.setrlimit(resource.RLIMIT_AS, (16 << 30, 16 << 30))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    rng = random.Random(seed)
    table = whole(rng)
    contents = {}
    for name, write in formats.items():
        write(table, folder / name)
        read(str(folder / name))
        contents[name] = (folder / name).read_bytes()
    refused = 0
    for case in range(cases):
        name = list(formats)[case % len(formats)]
        path = folder / name
        path.write_bytes(damaged(contents[name], rng))
        print(case, name, flush=True)
        try:
            read(str(path))
        except InputError as error:
            refused += 1
            if str(path) not in str(error) or "\n" in str(error):
                raise
    print(f"{refused} refused")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]), APART if sys.argv[4:] == ["apart"] else FORMATS)

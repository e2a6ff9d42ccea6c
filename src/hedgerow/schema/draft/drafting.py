"""The draft itself: read the sources in order, put them together, write a file that a person can finish."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hedgerow.errors import OptionError, SchemaError, TableError, listing, standing
from hedgerow.schema.document import Block, Flow, write_yaml
from hedgerow.schema.draft.catalogue import read_catalogue
from hedgerow.schema.draft.codebook import read_codebook
from hedgerow.schema.draft.constraints import Stated, read_constraints
from hedgerow.schema.draft.declaration import Declaration, Findings, complete, find, is_complete, merge
from hedgerow.schema.draft.descriptors import read_descriptor
from hedgerow.schema.draft.ipums import read_ipums
from hedgerow.schema.draft.labels import LABELLED, read_labels
from hedgerow.schema.draft.models import read_model
from hedgerow.schema.draft.public_table import read_public_table
from hedgerow.schema.file import File, plain_file
from hedgerow.schema.header import is_nameless, refuse_row, refuse_title
from hedgerow.schema.schema import TODO, Schema

EXAMPLES = {
    "integer": ("{type: integer, min: 0, max: 115}", "whole numbers; bounds that hold for anybody"),
    "number": ("{type: number, min: 0, max: 1e6, decimals: 2}", "numbers; generous bounds do no harm"),
    "category": (
        "{type: category, values: [low, mid, high], ordered: true}",
        "listed values; values: private finds them",
    ),
    "boolean": ("{type: boolean, missing: true}", "yes or no; missing: true where a value can be missing"),
    "date": (
        '{type: date, min: 1900-01-01, max: 2029-12-31, format: "%d.%m.%Y"}',
        "days; format: where they are not written 2029-12-31",
    ),
    "datetime": (
        "{type: datetime, min: 2024-01-01, max: 2024-12-31}",
        "moments; format: where they are not written 2024-12-31 23:59:59",
    ),
    "code": ("{type: code, size: 18}", "numbers 0 … size − 1 that stand for something"),
    "id": ('{type: id, pattern: "C-######"}', "never read: fresh keys, numbered; without a pattern UUIDs"),
    "text": ("{type: text}", "never read: left out, or the same constant: in every row"),
    "fake": ("{type: fake, what: email}", "never read: invented names, emails, phones, addresses"),
}
"""A declaration of each type, for those who fill in a draft, and what it is for."""
_ONE_LINE = 1 << 30
Batches = Callable[[str], Iterable[Any]]
"""Opens a table that is public and gives its Arrow batches."""


@dataclass(frozen=True)
class Draft:
    """A schema file, and what is left to do in it."""

    text: str
    columns: tuple[str, ...]
    open: tuple[str, ...]

    @property
    def summary(self) -> str:
        done = len(self.columns) - len(self.open)
        need = "needs" if len(self.open) == 1 else "need"
        rest = f"; {len(self.open)} {need} you, where it says {TODO}" if self.open else ""  # names may be a row
        return f"{done} of {len(self.columns)} complete{rest}"


def draft_schema(
    header: Sequence[str],
    sources: Sequence[str],
    *,
    dataset: str | None = None,
    file: File | None = None,
    public_batches: Batches | None = None,
) -> Draft:
    """Names come from the header, domains from the sources (earlier ones win), never from the private rows.

    `file` is how the table is written, which the schema then says.
    """
    with standing(lambda: "Nothing was written."):
        return _drafted(header, sources, dataset, file or File(), public_batches)


def _drafted(
    header: Sequence[str], sources: Sequence[str], dataset: str | None, file: File, public_batches: Batches | None
) -> Draft:
    refuse_row(header, "the table")
    refuse_title(header, "the table")
    named = [name for name in header if not is_nameless(name)]
    if len(set(named)) != len(named):
        raise TableError(
            "duplicate-column", "the table has two columns of the same name; a schema cannot tell them apart."
        )
    if not named:
        raise TableError("no-column", "no column of the table has a name.")
    said = [(source, read_source(source, public_batches)) for source in sources]
    columns = {name: complete(_put_together(name, said)) for name in named}
    for name, declaration in columns.items():
        _check(name, declaration)
    waiting = tuple(name for name, declaration in columns.items() if not is_complete(declaration))
    text = _write(dataset, file, columns, sources, len(header) - len(named), _rules(sources, columns))
    return Draft(text, tuple(columns), waiting)


def _rules(sources: Sequence[str], columns: dict[str, Declaration]) -> tuple[list[Any], list[str]]:
    """What sources say of several columns together: what conditions can say, and what is left to a person."""
    known = {name: declaration for name, declaration in columns.items() if is_complete(declaration)}
    stated = Stated()
    for source in sources:
        stated.join(read_constraints(source))
    taken: list[Any] = []
    left = list(stated.notes)
    for rule in stated.rules:
        try:
            Schema.from_dict({"columns": known, "rules": [rule]})
        except SchemaError:
            left.append(f"CHECK ({rule})" if isinstance(rule, str) else f"when {rule['when']}, then {rule['then']},")
        else:
            taken.append(rule)
    return taken, left


def read_source(source: str, public_batches: Batches | None) -> Findings:
    """What one source says, by column. The kind of source follows from how it is written."""
    if source.startswith("public:"):
        if public_batches is None:
            raise OptionError("public-table-not-opened", f'"{source}" needs a way to open public tables.')
        return read_public_table(public_batches(source.removeprefix("public:")))
    path = Path(source)
    if ":" in source and not path.exists() and "/" not in source:
        return read_model(source)
    if not path.is_file():
        raise OptionError("no-such-source", f'the source "{source}" is not a file.')
    return _reader(path)(path)


def _reader(path: Path) -> Callable[[Path], Findings]:
    readers: dict[str, Callable[[Path], Findings]] = {
        ".csv": read_codebook,
        ".tsv": read_codebook,
        ".cbk": read_ipums,
        ".json": read_descriptor,
        ".sql": read_catalogue,
        **dict.fromkeys(LABELLED, read_labels),
    }
    ending = path.suffix.lower()
    if ending not in readers:
        raise OptionError(
            "unknown-source",
            f'"{path.name}" is not a source that can be read; sources: {listing(readers, most=20)}, module:Model, '
            "public:TABLE.",
        )
    return readers[ending]


def _put_together(name: str, said: Sequence[tuple[str, Findings]]) -> Declaration:
    declaration: Declaration = {}
    for source, findings in said:
        found = find(findings, name)
        if found:
            where = Path(source.removeprefix("public:")).name
            declaration = merge(declaration, {**found, "source": f"{where}#{name}"})
    return declaration


def _check(name: str, declaration: Declaration) -> None:
    """A source that contradicts itself (min > max, a value twice) is told apart from one that says too little."""
    if not is_complete(declaration):
        return
    try:
        Schema(columns={name: declaration})
    except SchemaError as error:
        raise SchemaError(error.code, f"{declaration.get('source', 'the draft')}: {error}") from None


def _write(
    dataset: str | None,
    file: File,
    columns: dict[str, Declaration],
    sources: Sequence[str],
    nameless: int,
    rules: tuple[list[Any], list[str]],
) -> str:
    """A line for each column, below an example of every type."""
    origin = listing((Path(source).name for source in sources), most=6) if sources else "the header alone"
    width = max(len(example) for example, _ in EXAMPLES.values())
    head = (
        f"# Drafted from {origin}. No row of the private table was read.\n"
        f"# Replace every {TODO}; take values and bounds from what is publicly known, not from the rows.\n"
        "# person: the column that names a person, if a person can have several rows (with max_rows_per_person)\n"
        "# ignore: [columns to leave out]\n"
        "# A column is declared on one line, as one of:\n"
        + "".join(f"#   name: {example:{width}}  # {meaning}\n" for example, meaning in EXAMPLES.values())
        + (f"# {nameless} without a name: left out.\n" if nameless else "")
        + "".join(f"# {stated} may become one of the `rules`.\n" for stated in rules[1])
    )
    data: dict[str, Any] = {"dataset": dataset} if dataset else {}
    if plain_file(file):
        data["file"] = Flow(plain_file(file))
    data["columns"] = Block(
        {name: TODO if declaration == {"type": TODO} else Flow(declaration) for name, declaration in columns.items()}
    )
    if rules[0]:
        data["rules"] = rules[0]
    return head + write_yaml(data, width=_ONE_LINE)

"""hedgerow publish: one folder that a lawyer, a librarian and a stranger can each use."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from hedgerow.cli.ends import say_next
from hedgerow.cli.options import AllowColumn, AllowModel, ModelMemory, Quiet, size
from hedgerow.errors import OptionError, ReleaseError, counted


def publish(
    release: Annotated[Path, typer.Argument(help="A release file.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="Folder to write; it must not exist yet.")],
    table: Annotated[
        Path | None,
        typer.Option(
            help="The synthetic table, of linked tables their folder; it must be what the release draws. Default: as "
            "many rows as estimated."
        ),
    ] = None,
    publisher: Annotated[
        Path, typer.Option(help="What only the publisher knows; a draft is written where it is lacking.")
    ] = Path("publisher.yaml"),
    ledger: Annotated[
        Path | None, typer.Option(help="The dataset's ledger, whose sum goes into the statement.")
    ] = None,
    tables: Annotated[
        Path | None, typer.Option(help="A workload file: tables of counts to write beside the rows, with their errors.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="The seed that the table was drawn with.")] = 0,
    statement: Annotated[
        list[Path] | None,
        typer.Option(help="A template of the statement in another language, statement.LANGUAGE.md; repeatable."),
    ] = None,
    zip_: Annotated[bool, typer.Option("--zip", help="Also write the folder as one file, FOLDER.zip.")] = False,
    sign: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="Ed25519 private key (PEM) to sign the checksums with."),
    ] = None,
    quiet: Quiet = False,
    max_memory: ModelMemory = "8GB",
    allow_model: AllowModel = None,
    allow_column: AllowColumn = None,
) -> None:
    """Write a folder to publish: table, release, statement, metadata.

    The table, the release, its page, a privacy statement for lawyers and metadata for catalogues. Everything in it
    follows from the release and from your words; hedgerow verify FOLDER checks it.

    Examples:
        hedgerow publish synthetic.release --table synthetic.csv -o published
    """
    from hedgerow.cli.progress import TerminalProgress
    from hedgerow.private.explaining import statement as ledger_statement
    from hedgerow.private.ledger import Ledger, confirm_entry
    from hedgerow.progress import Limits
    from hedgerow.publish import counts, folder
    from hedgerow.publish.publication import Publication, made_with, tables_of
    from hedgerow.publish.publisher import load
    from hedgerow.release.bundle import Release, Trust
    from hedgerow.release.files import TABLE_SUFFIXES
    from hedgerow.release.linked import drawn_from
    from hedgerow.release.signing import check_key
    from hedgerow.run.outputs import check_outputs

    several = drawn_from(release) == "unit"
    if table is not None and table.suffix not in TABLE_SUFFIXES and not several:
        raise OptionError("unknown-suffix", f'"{table}" must end in one of {", ".join(TABLE_SUFFIXES)}.')
    packed = out.with_name(f"{out.name}.zip")
    if zip_:
        check_outputs([(packed, ())], {"release": release, "table": table, "ledger": ledger}, overwrite=False)
    if sign is not None:
        check_key(sign)
    facts = load(publisher)
    trust = Trust(tuple(allow_model or ()), size(max_memory), tuple(allow_column or ()))
    loaded = Release.load(release, **trust._asdict())
    if loaded.guarantee is None:
        raise ReleaseError("no-guarantee", f'"{release}" carries no privacy guarantee; it was not published.')
    said = None
    if ledger is not None:
        named = loaded.certificate.ledger
        confirm_entry(ledger, named)
        said = ledger_statement(Ledger(ledger), None if named is None else named["hash"])
    stem = re.sub("[^A-Za-z0-9_-]+", "-", (table if table and not several else release).stem).strip("-") or "synthetic"
    wanted = () if tables is None else counts.read(tables)
    drawn = tables_of(loaded, stem, loaded.expected_rows(), seed)
    publication = Publication(loaded, f"{stem}.release", drawn, facts, said, made_with(), wanted)
    if table is not None:
        publication = folder.as_many_rows(publication, table)
    with TerminalProgress(Limits(), quiet).phase("write the folder"):
        names = folder.write(
            out, publication, release, given=table, key=sign, translations=_translations(statement or [])
        )
        if zip_:
            folder.pack(out, packed)
    print(f"{out}: {counted(len(names), 'file')}")
    if zip_:
        print(f"{packed}: the same in one file")
    say_next(quiet, "verify", out, why="writes every document anew and compares")


def _translations(paths: list[Path]) -> dict[str, str]:
    found = {}
    for path in paths:
        if not re.fullmatch(r"statement\.[A-Za-z-]+\.md", path.name):
            raise OptionError(
                "bad-template-name", f'"{path}" must be named statement.LANGUAGE.md, for example statement.de.md.'
            )
        try:
            found[path.name] = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            raise OptionError("cannot-read", f'"{path}" cannot be read as UTF-8 text.') from None
    return found

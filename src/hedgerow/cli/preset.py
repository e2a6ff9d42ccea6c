"""hedgerow preset: a schema and options under one name, to look at and to edit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hedgerow.cli.command import command, group

app = group("Schemas with options of methods, under one name.")


@command(app, "list")
def list_() -> None:
    """Say what presets there are.

    Examples:
        hedgerow preset list
    """
    from hedgerow.errors import listing
    from hedgerow.schema import presets

    for name in presets.names():
        preset = presets.load(name)
        left = f" Leaves {listing(preset.open)} to you." if preset.open else ""
        print(f"{name:24} {preset.about}, for {listing(preset.methods)}.{left}")


@command(app)
def show(
    name: Annotated[str, typer.Argument(help="A preset, with or without preset: in front, or a file of that form.")],
    schema: Annotated[
        str | None, typer.Option("-s", "--schema", help="Apply it to this schema first, as synth -s FILE -s NAME does.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", dir_okay=False, help="A .yaml file to write and edit; then -s it.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")] = False,
) -> None:
    """Print a preset, or write it as a file that -s takes.

    Examples:
        hedgerow preset show census1940-match3
        hedgerow preset show census1940-match3 -o mine.yaml
    """
    from hedgerow.errors import OptionError, counted
    from hedgerow.release.files import whole_file
    from hedgerow.run.outputs import check_outputs
    from hedgerow.schema import presets

    if out is not None:
        named = {"schema": schema, "preset": name} if Path(name).is_file() else {"schema": schema}
        check_outputs([(out, (".yaml", ".yml"))], dict(named), overwrite=overwrite)
    given = name if Path(name).is_file() or name.startswith(presets.PREFIX) else presets.PREFIX + name
    preset = presets.find(given if schema is None else (schema, given))
    if preset is None:
        raise OptionError("no-preset", f'"{name}" is neither a preset nor a file of that form. Nothing was written.')
    for note in preset.notes:
        print(note)
    if out is None:
        print(preset.to_yaml(), end="")
        return
    with whole_file(out, replace=overwrite) as partial:
        partial.write_text(preset.to_yaml(), encoding="utf-8", newline="\n")
    columns, methods = len(preset.declared["columns"]), ", ".join(preset.methods)
    print(f"{out}: {counted(columns, 'column')}, and options of {methods}; edit it, then -s {out}")

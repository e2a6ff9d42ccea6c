"""hedgerow methods: what there is."""

from __future__ import annotations

import textwrap
from typing import Annotated

import typer


def methods(name: Annotated[str | None, typer.Argument(help="A method; all of them if left out.")] = None) -> None:
    """Say what methods there are, or all about one of them.

    What each guarantees, its options, its paper, and where ours differs.

    Examples:
        hedgerow methods
        hedgerow methods mst
    """
    from hedgerow.errors import listing
    from hedgerow.methods import DEFAULT, find, names, published
    from hedgerow.methods.option import declared
    from hedgerow.schema import presets

    if name is None:
        for each in names():
            about = find(each).about
            default = " (default)" if each == DEFAULT else ""
            print(f"{each:14} {about.title}{default}. {about.summary}")
        print(f"\nAs published, for comparisons: {listing(published())}.")
        print("\nPresets, in place of a schema (-s preset:NAME):")
        for each in presets.names():
            preset = presets.load(each)
            print(f"{each:24} {preset.about}, for {listing(preset.methods)}.")
        print("\nhedgerow methods NAME says more: the guarantee, the options, the paper.")
        return
    method = find(name)
    about = method.about
    print(f"{about.name}: {about.title}\n")
    _paragraph(about.summary)
    _paragraph("Why it is private: " + about.argument)
    _paragraph("Paper: " + about.paper)
    for departure in about.departures:
        _paragraph("Differs from the paper: " + departure)
    options = declared(method)
    print("Options (--set option=value):" if options else "No options.")
    for each, option in options.items():
        takes = "" if option.wanted in ("text", "a list") else f" ({option.wanted})"
        default = f" = {option.shown}" if option.shown else ""
        print(f"  {each}{default}   {option.help}{takes}")


def _paragraph(text: str) -> None:
    print(textwrap.fill(text, 100) + "\n")

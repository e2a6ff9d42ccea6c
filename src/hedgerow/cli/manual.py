"""The manual page, completions and the page of all commands, as files: `make man` writes them into the repository.

What lies in share/ a wheel puts into the share/ of its environment. All say what --help says, from the same source.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from hedgerow.cli.completion import SHELLS, script

if TYPE_CHECKING:
    from hedgerow.cli.tree import Command, Parameter

PLACES = {
    "bash": "share/bash-completion/completions/hedgerow",
    "zsh": "share/zsh/site-functions/_hedgerow",
    "fish": "share/fish/vendor_completions.d/hedgerow.fish",
    "man": "share/man/man1/hedgerow.1",
    "page": "docs/use/commands.md",
}
EXITS = {
    "0": "Done.",
    "1": "The fault is Hedgerow's own, or what was to be checked does not hold.",
    "2": "The input, an option or a limit is at fault; the sentence says what was read and spent by then.",
    "3": "A look that was paid for found values that fit nothing declared.",
    "4": "A release that was paid for is not as good as its schema demands.",
    "130": "Stopped by Ctrl-C or another request to end.",
}
VARIABLES = {
    "NO_COLOR": "No colours, whatever it is set to.",
    "TMPDIR": "Where rows that do not fit into memory lie while they are needed.",
    "OMP_NUM_THREADS": "How many threads arithmetic may take.",
}


def files(root: Command) -> dict[str, str]:
    """Every file by its place."""
    texts = {"man": page(root), "page": markdown(root)} | {shell: script(shell, root) for shell in SHELLS}
    return {PLACES[name]: text for name, text in texts.items()}


def page(root: Command) -> str:
    """The manual page, in roff."""
    lines = [
        '.\\" made by: make man',
        '.TH HEDGEROW 1 "" "Hedgerow" "User Commands"',
        ".SH NAME",
        "hedgerow \\- " + _roff(_lower(root.said.about.partition("\n")[0].rstrip("."))),
        ".SH SYNOPSIS",
        ".B hedgerow",
        "[\\-\\-version] [\\-\\-help]",
        ".I COMMAND",
        "[OPTIONS] [ARGUMENTS]",
        ".SH DESCRIPTION",
        *_paragraphs(root.said.about),
        ".SH COMMANDS",
    ]
    for command in root.all():
        if command is not root:
            lines += _command(command)
    lines += [".SH EXIT STATUS", *_terms(EXITS), ".SH ENVIRONMENT", *_terms(VARIABLES)]
    return "\n".join([*lines, ""])


def _command(command: Command) -> list[str]:
    lines = [f".SS {_roff(' '.join(command.words[1:]))}"]
    if command.parts:
        return [*lines, *_paragraphs(command.said.about)]
    arguments = [f"[{_name(each)}]" if not each.required else _name(each) for each in command.arguments]
    needed = [f"{option.spellings[-1]} {option.takes}" for option in command.options if option.required]
    lines += [f".B {_roff(' '.join(command.words))}", _roff(" ".join([*arguments, *needed, "[OPTIONS]"])), ".PP"]
    lines += _paragraphs(command.said.about)
    for each in command.parameters:
        taken = f" \\fI{each.takes}\\fR" if each.takes and each.spellings else ""
        head = ", ".join(_roff(spelling) for spelling in each.spellings) or _roff(_name(each))
        more = " May be given several times." if each.repeated and "repeatable" not in each.help else ""
        lines += [".TP", f"\\fB{head}\\fR{taken}", _line(each.help + more)]
    if command.said.examples:
        lines += [".PP", "Examples:", ".PP", ".nf", ".RS 2", *map(_line, command.said.examples), ".RE", ".fi"]
    return lines


def _name(argument: Parameter) -> str:
    return argument.name.rstrip("_").upper()


def _terms(said: dict[str, str]) -> list[str]:
    return [line for term, meaning in said.items() for line in (".TP", f".B {_roff(term)}", _line(meaning))]


def _paragraphs(text: str) -> list[str]:
    found = []
    for paragraph in text.split("\n\n"):
        found += [".PP", _line(" ".join(paragraph.split()))]
    return found[1:]


def _line(text: str) -> str:
    """A line of text, never taken for a request."""
    return "\\&" + _roff(text)


def _roff(text: str) -> str:
    return text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga")


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


def markdown(root: Command) -> str:
    """The page of all commands."""
    lines = [
        "# Commands",
        "",
        "What `hedgerow COMMAND --help` says, all of it. `man hedgerow` has the same, and "
        "[`hedgerow completion`](#hedgerow-completion) lets your shell complete it.",
        "",
        "<!-- made by: make man -->",
    ]
    for command in root.all():
        if command is root or command.parts:
            continue
        lines += ["", f"## hedgerow {' '.join(command.words[1:])}", "", *_wrapped(command.said.about)]
        if command.parameters:
            lines += ["", "| | takes | |", "|---|---|---|"]
        for each in command.parameters:
            named = ", ".join(f"`{spelling}`" for spelling in each.spellings) or f"`{_name(each)}`"
            takes = (
                f"{each.takes.lower()}{', several times' if each.repeated else ''}{', needed' if each.required else ''}"
            )
            lines.append(f"| {named} | {takes} | {_cell(each.help)} |")
        lines += ["", '```sh not-run="an example of --help, which the tests run"', *command.said.examples, "```"]
    lines += ["", "## Exit codes", "", "| | |", "|---|---|"]
    lines += [f"| {code} | {meaning} |" for code, meaning in EXITS.items()]
    lines += ["", "## Environment", "", "| | |", "|---|---|"]
    lines += [f"| `{name}` | {meaning} |" for name, meaning in VARIABLES.items()]
    return "\n".join([*lines, ""])


def _wrapped(text: str) -> list[str]:
    paragraphs = [" ".join(paragraph.split()) for paragraph in text.split("\n\n")]
    return [line for paragraph in paragraphs for line in ("", _cell(paragraph))][1:]


def _cell(text: str) -> str:
    """Text as Markdown, in which none of its signs means anything."""
    for sign in "|*<":
        text = text.replace(sign, f"\\{sign}")
    return text


def main() -> None:
    from hedgerow.cli.tree import tree

    folder = Path(sys.argv[1])
    for place, text in files(tree()).items():
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        (folder / place).write_text(text, encoding="utf-8", newline="\n")
        print(folder / place)


if __name__ == "__main__":
    main()

"""hedgerow completion: what completes commands at Tab. The scripts hold all words, so Tab starts no Python."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from hedgerow.cli.tree import Command, Parameter

SHELLS = ("bash", "zsh", "fish")


def completion(shell: Annotated[str, typer.Argument(help="bash, zsh or fish.")]) -> None:
    """Print what completes commands at Tab, for your shell.

    bash reads it from ~/.local/share/bash-completion/completions/hedgerow, zsh from a file _hedgerow in a folder of its
    $fpath, fish from ~/.config/fish/completions/hedgerow.fish. Print it again after an upgrade.

    Examples:
        hedgerow completion bash > hedgerow.bash
        hedgerow completion zsh > _hedgerow
        hedgerow completion fish > hedgerow.fish
    """
    from hedgerow.cli.tree import tree
    from hedgerow.errors import OptionError, listing, suggestion

    if shell not in SHELLS:
        raise OptionError(
            "unknown-shell",
            f'there is no completion for "{shell}"; shells: {listing(SHELLS)}.{suggestion(shell, SHELLS)}',
        )
    print(script(shell, tree()), end="")


def script(shell: str, root: Command) -> str:
    """The text that a shell reads."""
    return {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell](root)


def words_for(command: Command, parameter: Parameter) -> tuple[str, ...]:
    """What may stand for a parameter, where that is known beforehand."""
    from hedgerow import methods
    from hedgerow.samples import SAMPLES
    from hedgerow.schema import presets

    named = tuple(presets.PREFIX + name for name in presets.names())
    known = {
        "method": (*methods.names(), *methods.published()),
        "methods": methods.names(),
        "schema": named,
        "methods name": methods.names(),
        "example name": SAMPLES,
        "show name": named,
        "completion shell": SHELLS,
    }
    return known.get(f"{command.words[-1]} {parameter.name}", known.get(parameter.name, ()))


def _path(command: Command) -> str:
    """What was typed of a command: ledger/show."""
    return "/".join(command.words[1:])


def _paths(root: Command) -> list[str]:
    return [_path(command) for command in root.all() if command is not root]


def _taking(root: Command) -> Iterator[tuple[Command, Parameter, tuple[str, ...]]]:
    """Options that take a value, with the words for it."""
    for command in root.all():
        for option in command.options:
            if option.takes:
                yield command, option, words_for(command, option)


def _first_words(command: Command) -> tuple[str, ...]:
    """What may stand after a command, where that is known: its parts, or the words for its first argument."""
    if command.parts:
        return tuple(part.words[-1] for part in command.parts)
    return words_for(command, command.arguments[0]) if command.arguments else ()


def _short(text: str) -> str:
    """The first sentence, or clause, of a help."""
    return text.partition(". ")[0].partition("; ")[0].rstrip(".")


def _spellings(command: Command) -> list[tuple[str, str]]:
    """Every option of a command with what it is for."""
    own = [(spelling, _short(option.help)) for option in command.options for spelling in option.spellings]
    return [*own, ("--help", "Show this message and exit")]


# ---------------------------------------------------------------- bash


def _bash(root: Command) -> str:
    steps = "|".join(_steps(root))
    values = [
        f'        {"|".join(f"{_path(command)}:{each}" for each in option.spellings)}) known="{" ".join(words)}" ;;'
        for command, option, words in _taking(root)
    ]
    offered = []
    for command in root.all():
        options = " ".join(spelling for spelling, _ in _spellings(command))
        offered.append(f'        "{_path(command)}") options="{options}"; known="{" ".join(_first_words(command))}" ;;')
    return "\n".join(
        (
            "# bash completion of hedgerow, made by: hedgerow completion bash",
            "_hedgerow() {",
            '    local typed="${COMP_LINE:0:COMP_POINT}" words=() command="" options="" known=""',
            "    local index current previous",
            '    read -ra words <<< "$typed"',
            '    [[ "$typed" == *[[:space:]] ]] && words+=("")',
            "    for ((index = 1; index < ${#words[@]} - 1; index++)); do",
            '        case "$command/${words[index]}" in',
            f'            {steps}) command="${{command:+$command/}}${{words[index]}}" ;;',
            "        esac",
            "    done",
            '    current="${words[-1]}"; previous="${words[-2]}"',
            "    COMPREPLY=()",
            '    case "$command:$previous" in',
            *values,
            "        *)",
            '    case "$command" in',
            *offered,
            "    esac",
            '    [[ "$current" == -* ]] && known="$options" ;;',
            "    esac",
            '    COMPREPLY=($(compgen -W "$known" -- "$current"))',
            "    # bash takes a colon for the end of a word",
            '    if [[ "$current" == *:* && "$COMP_WORDBREAKS" == *:* ]]; then',
            '        COMPREPLY=("${COMPREPLY[@]#"${current%:*}:"}")',
            "    fi",
            "    return 0",
            "}",
            "complete -o default -F _hedgerow hedgerow",
            "",
        )
    )


def _steps(root: Command) -> list[str]:
    """How one more word leads from a command to one of its parts: /ledger, ledger/show."""
    return [f"{_path(command)}/{part.words[-1]}" for command in root.all() for part in command.parts]


# ---------------------------------------------------------------- zsh


def _zsh(root: Command) -> str:
    lines = [
        "#compdef hedgerow",
        "# zsh completion of hedgerow, made by: hedgerow completion zsh",
        "_hedgerow() {",
        '    local command="" index',
        "    local -a known options",
        "    for ((index = 2; index < CURRENT; index++)); do",
        '        case "$command/${words[index]}" in',
        f'            {"|".join(_steps(root))}) command="${{command:+$command/}}${{words[index]}}" ;;',
        "        esac",
        "    done",
        '    case "$command:${words[CURRENT-1]}" in',
    ]
    for command, option, words in _taking(root):
        spelled = "|".join(f'"{_path(command)}:{each}"' for each in option.spellings)
        compadd = f"compadd -- {' '.join(words)}; " if words else ""
        lines.append(f"        {spelled}) {compadd}_files; return ;;")
    lines += ["    esac", '    case "$command" in']
    for command in root.all():
        options = " ".join(_described(spelling, about) for spelling, about in _spellings(command))
        if command.parts:
            parts = ((part.words[-1], part.said.about.partition("\n")[0]) for part in command.parts)
            known = " ".join(_described(name, _short(about)) for name, about in parts)
        else:
            known = " ".join(_described(word, "") for word in _first_words(command))
        lines.append(f'        "{_path(command)}") options=({options}); known=({known}) ;;')
    lines += [
        "    esac",
        '    if [[ "${words[CURRENT]}" == -* ]]; then',
        '        _describe -o "option" options',
        "    elif (( ${#known} )); then",
        '        _describe "word" known',
        "    else",
        "        _files",
        "    fi",
        "}",
        'if [[ "${funcstack[1]}" == "_hedgerow" ]]; then _hedgerow "$@"; else compdef _hedgerow hedgerow; fi',
        "",
    ]
    return "\n".join(lines)


def _described(word: str, about: str) -> str:
    """'word:what it is for', quoted."""
    told = f"{word.replace(':', chr(92) + ':')}{':' if about else ''}{about}"
    return "'" + told.replace("'", "'\\''") + "'"


# ---------------------------------------------------------------- fish


def _fish(root: Command) -> str:
    steps = " ".join(_steps(root))
    lines = [
        "# fish completion of hedgerow, made by: hedgerow completion fish",
        "function __hedgerow_at",
        '    set -l command ""',
        "    for word in (commandline -opc)[2..-1]",
        f'        if contains -- "$command/$word" {steps}',
        '            set command (string trim -l -c / "$command/$word")',
        "        end",
        "    end",
        '    test "$command" = "$argv[1]"',
        "end",
    ]
    for command in root.all():
        at = f"complete -c hedgerow -n {_quoted(f'__hedgerow_at {_quoted(_path(command))}')}"
        for part in command.parts:
            about = _short(part.said.about.partition("\n")[0])
            lines.append(f"{at} -f -a {part.words[-1]} -d {_quoted(about)}")
        for word in () if command.parts else _first_words(command):
            lines.append(f"{at} -f -a {word}")
        for option in command.options:
            spelled = " ".join(
                f"-l {each[2:]}" if each.startswith("--") else f"-s {each[1:]}" for each in option.spellings
            )
            words = words_for(command, option)
            taken = f" -r -F -a {_quoted(' '.join(words))}" if words else " -r -F" if option.takes else " -f"
            lines.append(f"{at} {spelled}{taken} -d {_quoted(_short(option.help))}")
        lines.append(f"{at} -s h -l help -f -d 'Show this message and exit'")
    return "\n".join([*lines, ""])


def _quoted(text: str) -> str:
    """For fish, in single quotes."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"

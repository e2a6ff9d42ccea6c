"""Every code with its sentences, read off the source: what tests/golden/errors.txt holds.

    python tests/support/golden.py      writes the file anew

A sentence stands there with {names} where it is filled in. A new code, and every change of a sentence, shows in the
diff of that file.
"""

import ast
from collections.abc import Iterator

from hedgerow import errors
from repository import ROOT

GOLDEN = ROOT / "tests/golden/errors.txt"
SOURCE = ROOT / "src/hedgerow"
KEPT = "(the code of the fault inside)"
MAKERS = {
    "Fault": "Fault",
    "Said": "SchemaError",
    "key_error": "SchemaError",
    "_stop": "the command line",
}
"""What takes a code and a sentence as the classes of errors do."""


def spelled() -> str:
    """The text of the golden file."""
    found: dict[str, set[str]] = {}
    for kind, code, sentence in raised():
        found.setdefault(code, set()).add(f"    {kind}: {sentence}")
    return "".join(f"{code}\n" + "".join(f"{line}\n" for line in sorted(found[code])) for code in sorted(found))


def raised() -> Iterator[tuple[str, str, str]]:
    """Class, code and sentence of every error that is made on purpose."""
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                kind = _kind(node.func.id)
                if kind is not None:
                    yield kind, *_said(node, f"{path.relative_to(ROOT)}:{node.lineno}")


def _kind(name: str) -> str | None:
    known = getattr(errors, name, None)
    if (isinstance(known, type) and issubclass(known, errors.HedgerowError)) or name in ("TooLargeError",):
        return name
    return MAKERS.get(name)


def _said(call: ast.Call, where: str) -> tuple[str, str]:
    """The code and the sentence; the sentence is the last text among the arguments."""
    code, *rest = call.args
    assert rest, f"{where}: an error without a code"
    said = next((each for each in reversed(rest) if isinstance(each, ast.Constant | ast.JoinedStr)), rest[0])
    return _code(code), _template(said)


def _code(given: ast.expr) -> str:
    if isinstance(given, ast.Constant):
        return str(given.value)
    return str(getattr(errors, given.id)) if isinstance(given, ast.Name) and given.id.isupper() else KEPT


def _template(said: ast.expr) -> str:
    if isinstance(said, ast.JoinedStr):
        return "".join(_template(part) for part in said.values)
    if isinstance(said, ast.Constant):
        return str(said.value)
    return "{" + _name(said.value if isinstance(said, ast.FormattedValue) else said) + "}"


def _name(filled: ast.expr) -> str:
    """What stands for an expression: its last name. How it is computed is no part of a sentence."""
    if isinstance(filled, ast.Name):
        return filled.id
    if isinstance(filled, ast.Attribute):
        return filled.attr
    if isinstance(filled, ast.Call):
        return _name(filled.args[0]) if filled.args else _name(filled.func)
    if isinstance(filled, ast.Subscript):
        return _name(filled.value)
    return "…"


if __name__ == "__main__":
    GOLDEN.parent.mkdir(exist_ok=True)
    GOLDEN.write_text(spelled(), encoding="utf-8")
    print(f"{GOLDEN.relative_to(ROOT)}: {sum(not line.startswith(' ') for line in spelled().splitlines())} codes")

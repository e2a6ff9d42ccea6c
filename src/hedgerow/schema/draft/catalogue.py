"""A SQL catalogue: CREATE TABLE statements with types, CHECK constraints and enumerations."""

from __future__ import annotations

import re
from pathlib import Path

from hedgerow.errors import OptionError
from hedgerow.schema.draft.declaration import Declaration, Findings, merge, number

_COMMENT = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)
_STRING = r"'(?:[^']|'')*'"
_TABLE = re.compile(r"\bCREATE\s+(?:\w+\s+)*?TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?([^\s(]+)\s*\(", re.IGNORECASE)
_ENUM = re.compile(r"\bCREATE\s+TYPE\s+([\w.\"]+)\s+AS\s+ENUM\s*\(([^)]*)\)", re.IGNORECASE)
_NAME = r'(?:"(?:[^"]|"")+"|`[^`]+`|\[[^\]]+\]|\w+)'
_COLUMN = re.compile(rf"^\s*({_NAME})\s+(.*)$", re.DOTALL)
_TYPE = re.compile(r'^("?[\w.]+"?(?:\s+(?:precision|varying|unsigned))*)\s*(?:\(([^)]*)\))?(.*)$', re.DOTALL | re.I)
_CONSTRAINT = re.compile(r"^\s*(CONSTRAINT|PRIMARY|FOREIGN|UNIQUE|CHECK|KEY|INDEX|EXCLUDE|LIKE)\b", re.IGNORECASE)
_CHECK = re.compile(r"\bCHECK\s*\(", re.IGNORECASE)
_FOREIGN = re.compile(
    rf"\bFOREIGN\s+KEY\s*\(([^)]*)\)\s*REFERENCES\s+((?:{_NAME}\.)*{_NAME})\s*\(([^)]*)\)", re.IGNORECASE
)
_REFERS = re.compile(rf"\bREFERENCES\s+((?:{_NAME}\.)*{_NAME})\s*(?:\(\s*({_NAME})\s*\))?", re.IGNORECASE)
_BOUND = rf"(?:\(?({_STRING}|[+-]?\d+(?:\.\d+)?)\)?)"
_KINDS = [
    (r"(small|big|medium|tiny)?int(eger)?\d?|(big|small)?serial", "integer"),
    (r"numeric|decimal|real|double( precision)?|float\d?|money|number", "number"),
    (r"bool(ean)?|bit", "boolean"),
    (r"date", "date"),
    (r"timestamp(tz)?|datetime\d?|smalldatetime", "datetime"),
    (r"(n?var)?char(acter)?( varying)?2?|n?text|string|nchar|enum|clob|citext|bpchar", "category"),
]


def read_catalogue(path: Path) -> Findings:
    """The columns of every table in the file; of two with the same name the first."""
    try:
        text = _COMMENT.sub(" ", path.read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError:
        raise OptionError("not-utf8", f'"{path.name}" is not UTF-8 text.') from None
    enumerations = {_bare(name.split(".")[-1]).lower(): _strings(values) for name, values in _ENUM.findall(text)}
    bodies = {_last(start[1]): _enclosed(text, start.end() - 1) for start in _TABLE.finditer(text)}
    tables = {table: _table(body, enumerations) for table, body in bodies.items()}
    found: Findings = {}
    for table, columns in tables.items():
        for name, declaration in columns.items():
            found.setdefault(name, merge(declaration, _referred(bodies[table], name, tables)))
    if not found:
        raise OptionError("no-create-table", f'"{path.name}" holds no CREATE TABLE statement that can be read.')
    return found


def read_checks(path: Path) -> list[str]:
    """The CHECK constraints of the file that speak of several columns at once, or of alternatives: those are rules."""
    text = _COMMENT.sub(" ", path.read_text(encoding="utf-8-sig"))
    found = []
    for start in _TABLE.finditer(text):
        body = _enclosed(text, start.end() - 1)
        columns = [_bare(column[1]) for item in _split(body) if (column := _COLUMN.match(item))]
        for check in _checks(body):
            held = [name for name in columns if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", check)]
            if len(held) > 1 or re.search(r"\b(OR|NOT)\b", check, re.IGNORECASE):
                found.append(" ".join(check.split()))
    return list(dict.fromkeys(found))


def read_references(path: Path) -> list[tuple[list[str], str, list[str]]]:
    """The foreign keys of the file that span several columns: those, the table they refer to, and its columns."""
    text = _COMMENT.sub(" ", path.read_text(encoding="utf-8-sig"))
    return [
        ([_bare(name.strip()) for name in _split(own)], _last(table), [_bare(n.strip()) for n in _split(of)])
        for own, table, of in _FOREIGN.findall(text)
        if "," in own
    ]


def _table(body: str, enumerations: dict[str, list[str]]) -> Findings:
    found: Findings = {}
    constraints = []
    for item in _split(body):
        if _CONSTRAINT.match(item):
            constraints += _checks(item)
        elif column := _COLUMN.match(item):
            found[_bare(column[1])] = _column(column[2], enumerations)
            constraints += _checks(column[2])
    for name, declaration in found.items():
        for check in constraints:
            _constrain(declaration, name, check)
    return found


def _referred(body: str, name: str, tables: dict[str, Findings]) -> Declaration:
    """What another table says of the column that this one refers to; whether a value may be missing is said here."""
    for item in _split(body):
        column = _COLUMN.match(item)
        if not column or _CONSTRAINT.match(item) or _bare(column[1]) != name:
            continue
        if refers := _REFERS.search(column[2]):
            held = tables.get(_last(refers[1]), {}).get(_bare(refers[2] or name), {})
            return {key: value for key, value in held.items() if key != "missing"}
    return {}


def _column(definition: str, enumerations: dict[str, list[str]]) -> Declaration:
    parts = _TYPE.match(definition.strip())
    if not parts:
        return {}
    base, arguments, rest = _bare(parts[1]).lower(), parts[2] or "", parts[3]
    declaration: Declaration = {}
    if not re.search(r"\bNOT\s+NULL\b|\bPRIMARY\s+KEY\b", rest, re.IGNORECASE):
        declaration["missing"] = True
    listed = _strings(arguments) if base == "enum" else enumerations.get(base.split(".")[-1])
    if listed:
        return {**declaration, "type": "category", "values": listed}
    kind = next((kind for pattern, kind in _KINDS if re.fullmatch(pattern, base.removesuffix(" unsigned"))), None)
    whole = (
        kind == "number"
        and base in ("numeric", "decimal", "number")
        and re.fullmatch(r"\s*\d+\s*(,\s*0\s*)?", arguments)
    )
    if kind:
        declaration["type"] = "integer" if whole else kind
    return declaration


def _constrain(declaration: Declaration, name: str, check: str) -> None:
    """What one CHECK says of one column. Alternatives (OR, except with IS NULL) and negations say nothing certain."""
    bare = re.escape(name)
    quoted = rf'(?:{bare}|"{bare}"|`{bare}`|\[{bare}\])'
    column = rf'(?<![\w"])\(?{quoted}\)?(?:::[\w ]+)?'
    check = re.sub(rf"{column}\s+IS\s+NULL\s+OR\b|\bOR\s+{column}\s+IS\s+NULL", " ", check, flags=re.IGNORECASE)
    if not re.search(column, check, re.IGNORECASE) or re.search(r"\b(OR|NOT)\b", check, re.IGNORECASE):
        return
    one_of = re.search(rf"{column}\s*(?:IN\s*\(|=\s*ANY\s*\(+ARRAY\s*\[)", check, re.IGNORECASE)
    if one_of:
        listed = _strings(check[one_of.end() :]) or re.findall(r"-?\d+(?:\.\d+)?", check[one_of.end() :])
        for key in ("min", "max"):
            declaration.pop(key, None)
        declaration |= {"type": "category", "values": listed}
        return
    bounds: list[tuple[str, str, int]] = []
    for low, high in re.findall(rf"{column}\s+BETWEEN\s+{_BOUND}\s+AND\s+{_BOUND}", check, re.IGNORECASE):
        bounds += [("min", low, 0), ("max", high, 0)]
    for sign, bound in re.findall(rf"{column}\s*(>=|<=|>|<)\s*{_BOUND}", check, re.IGNORECASE):
        bounds.append(("min" if ">" in sign else "max", bound, 0 if "=" in sign else 1 if ">" in sign else -1))
    for bound, sign in re.findall(rf"{_BOUND}\s*(>=|<=|>|<)\s*{column}", check, re.IGNORECASE):
        bounds.append(("max" if ">" in sign else "min", bound, 0 if "=" in sign else -1 if ">" in sign else 1))
    for key, bound, beyond in bounds:
        _bound(declaration, key, bound, beyond)


def _bound(declaration: Declaration, key: str, bound: str, beyond: int) -> None:
    kind = declaration.get("type")
    if kind in ("integer", "number"):
        stated = number(bound.strip("'"))
        if stated is not None:
            declaration[key] = stated + beyond if kind == "integer" and isinstance(stated, int) else stated
    elif kind in ("date", "datetime") and bound.startswith("'"):
        declaration[key] = bound.strip("'")


def _checks(text: str) -> list[str]:
    return [_enclosed(text, start.end() - 1) for start in _CHECK.finditer(text)]


def _enclosed(text: str, opening: int) -> str:
    """What stands between a bracket and the one that closes it; strings and quoted names may hold brackets."""
    depth = 0
    for token in re.finditer(rf'{_STRING}|"[^"]*"|[()]', text[opening:]):
        depth += {"(": 1, ")": -1}.get(token[0], 0)
        if depth == 0:
            return text[opening + 1 : opening + token.start()]
    return text[opening + 1 :]


def _split(body: str) -> list[str]:
    """The items between commas that stand outside all brackets and strings."""
    items, depth, start = [], 0, 0
    for token in re.finditer(rf'{_STRING}|"[^"]*"|[(),]', body):
        depth += {"(": 1, ")": -1}.get(token[0], 0)
        if token[0] == "," and depth == 0:
            items.append(body[start : token.start()])
            start = token.end()
    return [*items, body[start:]]


def _strings(text: str) -> list[str]:
    return [literal[1:-1].replace("''", "'") for literal in re.findall(_STRING, text)]


def _last(name: str) -> str:
    """A table's own name, without that of its schema."""
    return _bare(name.split(".")[-1])


def _bare(name: str) -> str:
    """A name without its quotes."""
    return name[1:-1].replace('""', '"') if name[:1] in '"`[' else name

"""Parts of pages that benchmarks write: what stands between two comments is theirs."""

from __future__ import annotations

from bench.process import ROOT


def fill(page: str, name: str, text: str) -> None:
    """Put a text between `<!-- NAME: … -->` and `<!-- end of NAME -->` of a page of the docs."""
    path = ROOT / "docs" / page
    found = path.read_text(encoding="utf-8")
    begin, end = found.index(f"<!-- {name}:"), found.index(f"<!-- end of {name} -->")
    begin = found.index("-->", begin) + len("-->")
    path.write_text(f"{found[:begin]}\n{text.strip()}\n{found[end:]}", encoding="utf-8")


def refill(page: str, name: str, lines: dict[str, str]) -> None:
    """Put lines of a table there, by their first cells; lines that nobody measured this time stay."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    held = text[text.index(f"<!-- {name}:") : text.index(f"<!-- end of {name} -->")].splitlines()[1:]
    known = {line.split("|")[1].strip(): line for line in held if line.startswith("|")}
    fill(page, name, "\n".join((known | lines).values()))

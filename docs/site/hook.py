"""What the pages need on their way into the site: their links to other files of the repository, and marks of blocks."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[2]
COMMENT = re.compile(r"<!--.*?-->\n?", re.S)
FENCE = re.compile(r"^```([a-z]+) ([^\n]*)$", re.M)
NAMED = re.compile(r'(file|not-run|needs)=(?:"([^"]*)"|(\S+))')
LINK = re.compile(r"\]\(([^)#\s:]+)(#[^)\s]*)?\)")
PAGES = ("CHANGELOG.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "README.md", "SECURITY.md")
"""Files beside docs/ that are pages of the site as well."""


def on_files(files: Any, config: Any) -> Any:
    """Pages beside docs/, and every other file that a page links to, as text."""
    for name in PAGES:
        if (ROOT / name).exists() and name != "README.md":
            files.append(File.generated(config, f"repository/{name}", content=(ROOT / name).read_text("utf-8")))
    seen = set()
    for file in [each for each in files if each.is_documentation_page()]:
        for target in LINK.findall(file.content_string):
            place = _beside(file.src_uri, target[0])
            if place is not None and place not in seen and place not in PAGES and (ROOT / place).is_file():
                seen.add(place)
                files.append(File.generated(config, f"repository/{place}.txt", content=(ROOT / place).read_bytes()))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links lead to where the site has the file; comments go; a block says what file it is, or why nobody runs it."""

    if page.file.src_uri in ("index.md", "use/cheat-sheet.md"):
        page.meta["hide"] = ["navigation", "toc"]

    def led(found: re.Match[str]) -> str:
        place = _beside(page.file.src_uri, found[1])
        if place is None:
            return found[0]
        target = place.removeprefix("docs/")
        if not place.startswith("docs/"):
            target = f"repository/{place}" if place in PAGES else f"repository/{place}.txt"
        if place == "README.md":
            target = "index.md"
        return f"]({posixpath.relpath(target, posixpath.dirname(page.file.src_uri))}{found[2] or ''})"

    def marked(found: re.Match[str]) -> str:
        said = {name: one or other for name, one, other in NAMED.findall(found[2])}
        why = said.get("not-run", "").removeprefix("an example of --help, which the tests run")
        title = said.get("file") or (f"not run by the tests: {why}" if why else "")
        return f'```{found[1]} title="{title}"' if title else f"```{found[1]}"

    return FENCE.sub(marked, LINK.sub(led, COMMENT.sub("", markdown)))


def _beside(page: str, target: str) -> str | None:
    """The place in the repository of what a page links to, where that is not simply another file of docs/."""
    at_root = page.startswith("repository/")
    folder = posixpath.dirname(page.removeprefix("repository/") if at_root else f"docs/{page}")
    place = posixpath.normpath(posixpath.join(folder, target))
    return place if at_root or not place.startswith("docs/") else None

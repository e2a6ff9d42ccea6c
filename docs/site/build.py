"""Builds the site of docs/ into build/site/VERSION, beside the versions that are there, and checks every link in it.

    python docs/site/build.py            the version of this checkout, and of versions.json the latest
    python docs/site/build.py --check    the links of what was built before

Nothing is loaded from elsewhere while it is built or read: a page with such a script, style or picture is refused.
Links that lead out are listed in build/site/links.txt; nobody follows them.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "build" / "site"
LOADED = {"script": "src", "img": "src", "link": "href", "source": "src", "iframe": "src", "object": "data"}
LATEST = '<!doctype html><meta charset="utf-8"><title>Hedgerow</title><meta http-equiv="refresh" content="0; url={0}/">'


class Page(HTMLParser):
    """The anchors of a page, what it links to and what it loads."""

    def __init__(self, text: str):
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        said = dict(attributes)
        self.anchors |= {name for name in (said.get("id"), said.get("name")) if name}
        if tag == "a" and said.get("href"):
            self.links.append(str(said["href"]))
        about = said.get("rel") or ""
        if tag in LOADED and said.get(LOADED[tag]) and about not in ("canonical", "next", "prev"):
            self.loads.append(str(said[LOADED[tag]]))


def version() -> str:
    stated = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"].get("version")
    if stated is None:
        text = (ROOT / "src" / "hedgerow" / "__init__.py").read_text(encoding="utf-8")
        [stated] = re.findall(r'^__version__ = "([^"]+)"', text, re.M)
    return str(stated)


def build() -> None:
    number = version()
    made = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--clean", "--site-dir", str(SITE / number)]
    subprocess.run(made, cwd=ROOT, check=True, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"})
    (SITE / number / "404.html").unlink()  # of a folder below the root, which no server would show
    there = sorted((path.name for path in SITE.iterdir() if path.is_dir()), key=_rank, reverse=True)
    listed = [{"version": each, "title": each, "aliases": ["latest"] if each == there[0] else []} for each in there]
    (SITE / "versions.json").write_text(json.dumps(listed), encoding="utf-8")
    (SITE / "index.html").write_text(LATEST.format(there[0]), encoding="utf-8")


def _rank(name: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", name)]


def faults(folder: Path) -> tuple[list[str], set[str]]:
    """What is wrong with the links of a built site, and the links that lead out of it."""
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in sorted(folder.rglob("*.html"))}
    wrong, outside = [], set()
    for path, page in pages.items():
        where = path.relative_to(folder)
        wrong += [f"{where} loads {each}" for each in page.loads if urlsplit(each).scheme in ("http", "https")]
        for link in [*page.links, *page.loads]:
            parts = urlsplit(link)
            if parts.scheme == "data":
                continue
            if parts.scheme or parts.netloc:
                outside.add(link)
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            if not target.is_file():
                wrong.append(f"{where} links to {link}, which is not there")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
                wrong.append(f"{where} links to {link}, whose anchor is not there")
    for path in folder.rglob("*.css"):
        loaded = re.findall(r"url\(['\"]?(https?:[^)'\"]+)", path.read_text(encoding="utf-8"))
        wrong += [f"{path.relative_to(folder)} loads {each}" for each in loaded]
    return wrong, outside


def main() -> None:
    if sys.argv[1:] != ["--check"]:
        build()
    wrong, outside = faults(SITE / version())
    (SITE / "links.txt").write_text("".join(f"{each}\n" for each in sorted(outside)), encoding="utf-8")
    pages = len(list((SITE / version()).rglob("*.html")))
    print("".join(f"{each}\n" for each in wrong), end="")
    print(f"{SITE.relative_to(ROOT)}/{version()}: {pages} pages, {len(outside)} links lead out, {len(wrong)} are dead")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()

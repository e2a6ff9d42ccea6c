"""The blocks of the pages: which there are, and how those of a page are run, one after the other, in one process.

A block says by its first line what it is: ```sh (commands), ```console (commands after `$ `, and what they print),
```python, or text that is shown (yaml, sql, csv, text). `file=NAME` writes it to a file first. What is not run says
why, in `not-run="…"`; `needs="PACKAGE"` leaves it out where a package is not installed; `slow` leaves it to
`make docs-blocks`. Blocks in an HTML comment prepare what the page speaks of; "(slow)" in the comment below a title
speaks for the whole page.
"""

import contextlib
import importlib.util
import io
import os
import re
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

import yaml

from repository import ROOT

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^( *)```([a-z]*)([^\n]*)\n(.*?)^\1```$", re.M | re.S)
SAID = re.compile(r'(slow)|(file|not-run|needs)=(?:"([^"]*)"|(\S+))')
RUN = ("sh", "console", "python")
SHOWN = ("yaml", "sql", "csv", "text", "cpp", "json")
REFUSED = re.compile(r"^hedgerow \[([a-z0-9-]+)\]: ", re.M)


@dataclass(frozen=True)
class Block:
    page: Path
    line: int
    language: str
    said: dict[str, str]
    text: str

    @property
    def where(self):
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def runs(self):
        return self.language in RUN and "not-run" not in self.said and "file" not in self.said

    @property
    def commands(self):
        """Each command with the code of the refusal that the page shows after it, if it shows one."""
        found = []
        shown = self.text.replace("\\\n", " ").splitlines()
        while shown:
            line = shown.pop(0)
            if self.language == "console" and not line.startswith("$ "):
                refused = REFUSED.match(line)
                if refused:
                    found[-1] = (found[-1][0], refused[1])
                continue
            line = line.removeprefix("$ ")
            while not _whole(line):
                line += f"\n{shown.pop(0)}"
            if line and not line.startswith("#"):
                found.append((line, None))
        return found


def _whole(line):
    """Whether every quote is closed."""
    try:
        shlex.split(line, comments=True)
        return True
    except ValueError:
        return False


def blocks(page):
    text = page.read_text(encoding="utf-8")
    return [
        Block(page, text.count("\n", 0, found.start()) + 1, found[2], _said(found[3]), found[4])
        for found in FENCE.finditer(text)
    ]


def _said(words):
    return {each[0] or each[1]: each[2] or each[3] for each in SAID.findall(words)}


def is_slow(page):
    return "<!-- Before the page, for the tests (slow):" in page.read_text(encoding="utf-8")


def steps(page, slow):
    """What the process of a page does: (kind, where, text) in the order of the page."""
    made = []
    for block in blocks(page):
        if "file" in block.said:
            made.append(("file", block.said["file"], block.text))
        if not block.runs or ("slow" in block.said and not slow) or _lacks(block):
            continue
        if block.language == "python":
            made.append(("python", block.where, block.text))
        else:
            made += [(f"sh {refused or ''}", block.where, line) for line, refused in block.commands]
    return made


def _lacks(block):
    return "needs" in block.said and importlib.util.find_spec(block.said["needs"]) is None


def run(made):
    """In a process of its own, in a folder of its own."""
    sys.path.insert(0, os.getcwd())
    names = {"__name__": "__main__"}
    for kind, where, text in made:
        if kind == "file":
            Path(where).write_text(text, encoding="utf-8")
            continue
        print(f"=== {where}", file=sys.stderr)
        if kind == "python":
            exec(compile(text, where, "exec"), names)
        else:
            print(text, file=sys.stderr)
            _command(text, kind.partition(" ")[2])


def _command(line, refused):
    from hedgerow.cli import main

    words = shlex.split(line, comments=True)
    if words[0] == "ls":
        assert Path(words[1]).exists(), line
        return
    assert words[0] == "hedgerow", f'{line}: not a command of ours; say not-run="…"'
    into = os.devnull
    if ">" in words:
        words, into = words[:-2], words[-1]
    sys.argv = words
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said), open(into, "w") as out, contextlib.redirect_stdout(out):
            main()
        ended = 0
    except SystemExit as end:
        ended = end.code or 0
    print(said.getvalue(), file=sys.stderr)
    if refused:
        assert REFUSED.findall(said.getvalue())[-1:] == [refused], f"{line}: was to be refused with {refused}"
    else:
        assert ended == 0, f"{line}: exit code {ended}"


def parsed(block):
    """A block of YAML, which must be whole."""
    return yaml.safe_load(block.text)

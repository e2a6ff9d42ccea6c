"""Every command and every piece of Python in the README and in docs/ runs, and none is left out in silence."""

import re
import shlex

import pytest

import blocks as found
from blocks import PAGES, RUN, SHOWN, blocks, is_slow, steps
from hedgerow.cli.tree import tree
from refusals import code_in
from repository import ROOT

NAMES = [str(page.relative_to(ROOT)) for page in PAGES]
RUNNABLE = [name for name in NAMES if steps(ROOT / name, slow=True)]
QUICK = [name for name in RUNNABLE if not is_slow(ROOT / name)]
LATER = [
    name for name in RUNNABLE if is_slow(ROOT / name) or any("slow" in block.said for block in blocks(ROOT / name))
]
NOT_RUN = 12
"""Blocks that say why nobody runs them here; those of the page of commands run in tests/cli. One more changes this."""
COMMANDS = {command.words[1:]: command for command in tree().all()}
INLINE = re.compile(r"(?<!`)`(hedgerow [^`]+)`(?!`)", re.S)


def carried_out(name, folder, server, slow):
    done = server.run([], folder, before=f"import blocks; blocks.run({steps(ROOT / name, slow)!r})")
    assert done.code == 0, done.err[-4000:]


@pytest.mark.parametrize("name", QUICK)
def test_the_blocks_of_a_page_run(name, tmp_path, server):
    carried_out(name, tmp_path, server, slow=False)
    if "--allow-" in (ROOT / name).read_text(encoding="utf-8") and name.startswith("docs/extend/"):
        refuses_without_the_users_word(tmp_path, server)


@pytest.mark.docs
@pytest.mark.parametrize("name", LATER)
def test_the_slow_blocks_of_a_page_run(name, tmp_path, server):
    carried_out(name, tmp_path, server, slow=True)


def refuses_without_the_users_word(folder, server):
    """The release of the page, read by someone who allowed nothing: its module is not imported."""
    for module in folder.glob("*.py"):
        module.write_text("raise SystemExit('it was imported')")
    stranger = server.run(["verify", "synthetic.release"], folder)
    assert stranger.code == 2
    assert code_in(stranger.err) in ("model-not-allowed", "column-not-allowed")
    assert "--allow-" in stranger.err


@pytest.mark.parametrize("name", NAMES)
def test_every_block_says_what_it_is(name):
    for block in blocks(ROOT / name):
        assert block.language in (*RUN, *SHOWN), f"{block.where}: {block.language!r}"
        assert set(block.said) <= {"file", "not-run", "needs", "slow"}
        if block.language == "text":
            assert not re.match(r"(hedgerow [^\[]|\$ |pip |import )", block.text), f"{block.where}: a command as text"
        if block.language == "yaml" and "not-run" not in block.said:
            assert found.parsed(block), block.where
        if block.runs and block.language != "python":
            assert block.commands, f"{block.where}: no command"


def test_what_is_not_run_is_counted():
    left = [
        block
        for name in NAMES
        if name != "docs/use/commands.md"
        for block in blocks(ROOT / name)
        if "not-run" in block.said
    ]
    assert len(left) == NOT_RUN, [block.where for block in left]
    assert all(len(block.said["not-run"]) > 3 for block in left)


@pytest.mark.parametrize("name", NAMES)
def test_commands_in_sentences_have_the_options_that_they_name(name):
    """`hedgerow synth … --resume`: the command exists, and takes every option that is written."""
    text = found.FENCE.sub("", (ROOT / name).read_text(encoding="utf-8"))
    for typed in INLINE.findall(text):
        assert_typed(typed, name)


def assert_typed(typed, where):
    _, *words = re.sub(r"[\[\]|]", " ", typed).replace("'", "").replace('"', "").split()
    path = ()
    while words and (*path, words[0]) in COMMANDS:
        path = (*path, words.pop(0))
    plain = not words or words[0].startswith("-") or path
    assert plain or words[0] in ("COMMAND",), f"{where}: `{typed}` is no command"
    known = {spelling for option in COMMANDS[path].options for spelling in option.spellings} | {
        "--help",
        "--version",
        "-h",
    }
    for word in words:
        if word.startswith("-") and len(word) > 1 and not word[1].isdigit():
            assert word.partition("=")[0].rstrip(",.;:") in known, f"{where}: `{typed}` takes no {word}"


def test_a_page_that_lies_is_found(tmp_path, server):
    """The check can fail: a wrong option, a wrong name, a refusal that does not come."""
    for made, why in (
        ([("sh ", "x", "hedgerow verify --nonsense")], "exit code 2"),
        ([("python", "x", "import hedgerow as hr; hr.synthesise")], "synthesise"),
        ([("sh misfits", "x", "hedgerow methods mst")], "was to be refused"),
        ([("sh ", "x", "rm -r .")], "not a command of ours"),
    ):
        done = server.run([], tmp_path, before=f"import blocks; blocks.run({made!r})")
        assert done.code != 0
        assert why in done.err
    with pytest.raises(AssertionError):
        assert_typed("hedgerow synth TABLE --epsilo 1", "x")
    assert shlex.split("a # b", comments=True) == ["a"]


def test_a_method_is_as_short_as_the_page_says():
    [text] = [block.text for block in blocks(ROOT / "docs/extend/method.md") if block.said.get("file") == "pairs.py"]
    assert len(text[text.index("@dataclass") :].splitlines()) <= 30

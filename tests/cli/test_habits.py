"""What people expect of a command: examples that run, completion, a manual page, no colours where none are wanted."""

import json
import os
import pty
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from contextlib import closing, suppress

import pytest

from declared_people import PUBLISHER
from hedgerow.cli import doctor, manual
from hedgerow.cli.completion import script, words_for
from hedgerow.cli.tree import tree
from hedgerow.samples import opm
from refusals import code_in
from repository import ROOT

ALL = [command for command in tree().all() if not command.parts]
SLOW = ("audit", "compare", "demo")
"""Commands whose examples take minutes: `make docs-blocks` runs them."""
COLOUR = re.compile(r"\x1b\[[0-9;]*3[0-9]")
CODEBOOK = "name,type,values,min,max\nage,category,20-24|25-29,,\npay,integer,,0,400000\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """What the examples speak of."""
    made = tmp_path_factory.mktemp("examples")
    (made / "codebook.csv").write_text(CODEBOOK)
    (made / "study.yaml").write_text(
        "tables: {people: {table: people.csv, schema: people.yaml}}\nmethods: {ours: independent}\n"
        "epsilons: [1]\nruns: 1\nmetrics: [tvd1]\n"
    )
    return made


def test_every_command_has_examples_and_a_first_line_that_fits():
    for command in ALL:
        assert command.said.examples, command.words
        for line in command.said.examples:
            assert line.startswith(" ".join(command.words)), line
    for command in tree().all():
        first = command.said.about.partition("\n")[0]
        assert len(first.partition(". ")[0]) <= 66 or command.words == ("hedgerow",), first


def test_every_example_runs(folder, server):
    """In the order in which somebody would type them."""
    examples = {" ".join(command.words[1:]): command.said.examples for command in ALL}
    first = ["example", "ledger create", "ledger period", "schema json-schema", "plan", "synth"]
    last = ["verify", "ledger replaces", "ledger show", "ledger export"]
    order = [*first, *(name for name in examples if name not in (*first, *last, *SLOW)), *last]
    assert {*order, *SLOW} == examples.keys()
    for name in order:
        if name == "publish":
            (folder / "publisher.yaml").write_text(json.dumps(PUBLISHER))
        if name == "counts":
            (folder / "named.yaml").write_text("- [sex, education]\n- [agency]\n")
            typed = "synth people.csv -s people.yaml -e 1 -m residual --workload named.yaml -o named.csv"
            assert server.run(typed.split(), folder).code == 0
        if name == "ledger replaces":
            typed = "synth people.csv -s people.yaml -e 1 -m independent -o corrected.csv --ledger people.ledger"
            assert server.run(typed.split(), folder).code == 0
        for line in examples[name]:
            assert_runs(line, folder, server)


@pytest.mark.docs
def test_slow_examples_run(folder, server):
    if not (folder / "people.csv").exists():
        assert_runs("hedgerow example opm -o people.csv --rows 2000", folder, server)
    for command in ALL:
        if command.words[1] in SLOW:
            for line in command.said.examples:
                assert_runs(line, folder, server)


def assert_runs(line, folder, server):
    typed, into = re.fullmatch(r"(.*?)(?: > (\S+))?", line).groups()
    words = shlex.split(typed)[1:]
    if words[0] == "studio":
        assert_opens(server.start([*words, "--no-browser", "--project", "studio"], folder), line)
        shutil.rmtree(folder / "studio")
        return
    done = server.run(words, folder)
    assert done.code == 0, f"{line}\n{done.err}"
    if into:
        (folder / into).write_text(done.out)


def assert_opens(running, line):
    """A command that goes on until it is told to end."""
    until = time.monotonic() + 120
    while "The studio is open" not in running.said("out") and time.monotonic() < until:
        time.sleep(0.05)
    assert "The studio is open" in running.said("out"), line
    os.kill(running.pid, signal.SIGINT)
    assert running.wait().code == 0


def test_help_is_short_plain_and_ends_in_examples(hedgerow, server, tmp_path):
    for words in (["--help"], ["-h"], ["synth", "-h"], ["ledger", "show", "--help"]):
        done = server.run(words, tmp_path)
        assert done.code == 0
        assert "\x1b" not in done.out
        assert not re.search("[╭│╰]", done.out)
    assert "Examples:\n    hedgerow ledger show people.ledger\n" in done.out


def test_what_is_shipped_is_what_the_commands_say():
    """`make man` writes it."""
    for place, text in manual.files(tree()).items():
        assert (ROOT / place).read_text(encoding="utf-8") == text, f"{place}: make man"


def test_the_manual_page_has_every_command_and_option():
    page = manual.page(tree()).replace("\\-", "-")
    for command in ALL:
        assert f".SS {' '.join(command.words[1:])}" in page
        for option in command.options:
            assert option.spellings[-1] in page
    if shutil.which("man"):
        shown = subprocess.run(
            ["man", "--warnings", "-l", str(ROOT / manual.PLACES["man"])],
            capture_output=True,
            text=True,
            env={**os.environ, "MANWIDTH": "80", "LC_ALL": "C.UTF-8"},
            check=True,
        )
        assert not shown.stderr
        assert "hedgerow synth people.csv" in shown.stdout


def completed(shell, typed, tmp_path):
    """What a shell offers at Tab."""
    file = tmp_path / "completion"
    file.write_text(script(shell, tree()))
    code = {
        "bash": f'source {file}; COMP_LINE="$1"; COMP_POINT=${{#1}}; _hedgerow; printf "%s\\n" "${{COMPREPLY[@]}}"',
        "fish": f"source {file}; complete -C $argv[1]",
        "zsh": f"""
compdef() {{ }}; compadd() {{ while [[ $1 == -* ]]; do shift; done; print -l -- $@ }}; _files() {{ print FILES }}
_describe() {{
    [[ $1 == -o ]] && shift
    local each
    for each in ${{(P)2}}; do print -r -- ${{${{each//\\\\:/;}}%%:*}}; done
}}
source {file}
words=(${{(z)1}}); [[ $1 == *' ' ]] && words+=(''); CURRENT=$#words; _hedgerow
""",
    }[shell]
    arguments = [shell, "-c", code, typed] if shell == "fish" else [shell, "-c", code, shell, typed]
    done = subprocess.run(arguments, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert not done.stderr, done.stderr
    return {line.split("\t")[0].replace(";", ":") for line in done.stdout.splitlines()}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_tab_completes(shell, tmp_path):
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} on this machine")
    (tmp_path / "people.csv").touch()
    known = {command.words[1] for command in tree().all() if command.words[1:]}
    for typed, some in (
        ("hedgerow ", known),
        ("hedgerow ledger ", {"create", "show", "export"}),
        ("hedgerow synth people.csv --al", {"--allow-misfits", "--allow-column"}),
        ("hedgerow synth people.csv -m ", {"hedge", "mst", "aim:paper"}),
        ("hedgerow example ", {"opm", "visits"}),
        ("hedgerow methods m", {"mst", "mwem"}),
        ("hedgerow completion ", {"bash", "zsh", "fish"}),
    ):
        assert some <= completed(shell, typed, tmp_path), typed
    assert "--epsilon" not in completed(shell, "hedgerow verify -", tmp_path)
    presets = completed(shell, "hedgerow synth people.csv -s preset:ac", tmp_path)
    assert presets & {"preset:acs", "acs"}  # bash takes a colon for the end of a word
    assert not completed("bash", "hedgerow synth people.csv -o ", tmp_path) - {""}  # files, as bash offers by itself


def test_words_at_tab_are_those_that_the_commands_take():
    found = {
        (command.words[-1], option.name): words_for(command, option) for command in ALL for option in command.parameters
    }
    assert "hedge" in found["synth", "method"]
    assert found["example", "name"][0] == "acs"
    assert all(words == () for (_, name), words in found.items() if name in ("release", "ledger", "out"))


def test_the_version_says_what_it_is_made_of(server, tmp_path):
    from hedgerow import __version__

    first, *rest = server.run(["--version"], tmp_path).out.splitlines()
    assert first == f"hedgerow {__version__}"
    said = "\n".join(rest)
    assert "_count, _model, _records (" in said
    assert f"python  {sys.version.split()[0]}" in said
    assert re.search(r"^commit  (not known|[0-9a-f]{12})", said, re.M)


def test_the_doctor_says_what_is_here_and_what_is_not(server, tmp_path):
    done = server.run(["doctor"], tmp_path)
    assert done.code == 0, done.err
    assert "✓ kernels" in done.out
    assert "✓ noise" in done.out
    found = json.loads(server.run(["doctor", "--json"], tmp_path).out)
    assert found["works"]
    assert {each["state"] for each in found["checks"]} <= {"works", "missing"}
    lacking = "from importlib import metadata\nreal = metadata.version\n" + (
        "def version(name):\n    if name == 'duckdb': raise metadata.PackageNotFoundError\n    return real(name)\n"
        "metadata.version = version"
    )
    done = server.run(["doctor"], tmp_path, before=lacking)
    assert done.code == 0
    assert '– DuckDB          not here: duckdb, for tables in DuckDB. Hint: pip install "hedgerow[engines]"' in done.out


@pytest.mark.parametrize(
    ("broken", "named"),
    [
        (
            "from hedgerow.private import noise\nnoise.gaussian = lambda stream, scale, count: stream.words(count) * 0",
            "noise",
        ),
        ("from hedgerow import _count\n_count.count = lambda *_: [[0] * 12]", "kernels"),
        ("import tempfile\ntempfile.tempdir = '/nowhere'", "temporary files"),
    ],
)
def test_the_doctor_finds_what_is_broken(server, tmp_path, broken, named):
    done = server.run(["doctor"], tmp_path, before=broken)
    assert (done.code, code_in(done.err)) == (1, "doctor-faults")
    assert f"✗ {named}" in done.out
    assert not json.loads(server.run(["doctor", "--json"], tmp_path, before=broken).out)["works"]


def test_the_doctor_knows_every_extra():
    """But for those that are for whoever develops Hedgerow."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert {*doctor.USES, "engines"} == {*extras} - {"test", "bench", "servers", "validators"}


def on_a_terminal(folder, *words, **env):
    """What a command writes to a terminal."""
    ours, theirs = pty.openpty()
    done = subprocess.Popen(
        [sys.executable, "-m", "hedgerow", *words],
        cwd=folder,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**{key: value for key, value in os.environ.items() if key != "NO_COLOR"}, "TERM": "xterm", **env},
    )
    os.close(theirs)
    said = b""
    with closing(os.fdopen(ours, "rb", buffering=0)) as read, suppress(OSError):  # the other end goes away
        while part := read.read(4096):
            said += part
    assert done.wait() == 0, said.decode()
    return said.decode()


def test_colours_only_where_they_are_wanted(tmp_path):
    (tmp_path / "people.yaml").write_text(opm.SCHEMA)
    words = ("plan", "-s", "people.yaml", "--rows", "1000", "-e", "1")
    shown = on_a_terminal(tmp_path, *words)
    assert "forecast" in shown  # progress, where somebody watches
    assert COLOUR.search(shown)
    assert not COLOUR.search(on_a_terminal(tmp_path, *words, NO_COLOR="1"))


def test_a_command_ends_with_what_comes_next(server, people):
    words = ["synth", "people.parquet", "-s", "people.yaml", "-e", "1", "-m", "independent"]
    done = server.run([*words, "-o", "one.csv"], people)
    assert "next: hedgerow evaluate people.parquet one.csv -s people.yaml" in done.err
    assert "next: hedgerow publish one.release --table one.csv -o published" in done.err
    assert "next:" not in done.out
    for quiet, out in (("-q", "two.csv"), ("--json", "three.csv")):
        assert "next:" not in server.run([*words, "-o", out, quiet], people).err
    checked = server.run(["verify", "one.release"], people)
    assert "next: hedgerow sample one.release" in checked.err
    assert "next:" not in server.run(["verify", "one.release", "--json"], people).err
    assert "next:" not in server.run(["verify", "one.release", "-q"], people).err
    spaced = people / "my people.csv"
    spaced.write_text("a,b\n1,2\n")
    done = server.run(["schema", "draft", "my people.csv", "-o", "s.yaml"], people)
    assert "next: hedgerow schema check 'my people.csv' -s s.yaml" in done.err

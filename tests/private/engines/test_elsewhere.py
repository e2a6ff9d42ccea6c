"""Engines made elsewhere: every command that takes a table takes them, or says before anything is read why not."""

import pytest

from hedgerow.audit import Violation, check_engine

ENGINES = '''
from hedgerow.private.engines import open_engine
from hedgerow.private.engines.arrow import ArrowEngine
from hedgerow.private.sources.source import open_source


class Handing(ArrowEngine):
    def __init__(self, location, *, bounding_key=None, memory=4 << 30):
        super().__init__(open_source(location), bounding_key=bounding_key, memory=memory // 16)


class InPlace:
    """No row leaves: there is no `source`."""

    def __init__(self, location, *, bounding_key=None, memory=4 << 30):
        self._inside = Handing(location, bounding_key=bounding_key, memory=memory)
        for name in ("header", "prepare", "people_per_value", "count"):
            setattr(self, name, getattr(self._inside, name))


class Lacking(ArrowEngine):
    def __init__(self, location):
        super().__init__(open_source(location))


class Failing(ArrowEngine):
    def __init__(self, location, *, bounding_key=None, memory=4 << 30):
        raise ConnectionError("a row: Zaphod")


class Nothing:
    def __init__(self, location, *, bounding_key=None, memory=4 << 30):
        pass


class Miscounting(Handing):
    def count(self, queries):
        return [{}["Zaphod"] for query in queries]


class Misreading(Handing):
    def prepare(self, encoding):
        int("Zaphod", 10)
'''
TABLE = "there:{}://people.parquet"
COMMANDS = {
    "draft": ("schema", "draft", TABLE, "-o", "drafted.yaml"),
    "check": ("schema", "check", TABLE, "-s", "people.yaml"),
    "private": ("schema", "check", TABLE, "-s", "people.yaml", "--private", "misfits.html"),
    "synth": ("synth", TABLE, "-s", "people.yaml", "-e", "1", "-m", "independent", "-o", "out.csv"),
    "evaluate": ("evaluate", TABLE, "people.parquet", "-s", "people.yaml", "--metrics", "tvd1"),
    "compare": (
        *("compare", TABLE, "-s", "people.yaml", "--methods", "independent", "--epsilons", "1", "--runs", "1"),
        *("--metrics", "tvd1", "-o", "compared"),
    ),
}
LOOKS_AT_ROWS = ("private", "evaluate", "compare")


@pytest.fixture
def typed(server, people):
    """A command about a table in an engine of the folder where we stand."""
    (people / "there.py").write_text(ENGINES)

    def run(command, engine, *more):
        return server.run([*(word.format(engine) for word in COMMANDS[command]), *more], people)

    return run


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_takes_an_engine_that_hands_out_rows(typed, command):
    done = typed(command, "Handing")
    assert done.code == 0, done.err
    if command == "compare":
        assert "bootstrap 0." in done.out
        assert "did not end well" not in done.out


@pytest.mark.parametrize("command", COMMANDS)
def test_one_that_counts_in_place_is_refused_only_where_rows_are_looked_at(typed, people, command):
    before = sorted(people.iterdir())
    done = typed(command, "InPlace")
    if command in LOOKS_AT_ROWS:
        assert done.code == 2
        assert done.err.startswith("hedgerow [no-rows-handed-out]: ") or command == "compare"
        assert "[no-rows-handed-out]: " in done.err
        assert sorted(path for path in people.iterdir() if path.name != "__pycache__") == before
    else:
        assert done.code == 0, done.err


@pytest.mark.parametrize(
    ("engine", "code"),
    [
        ("Lacking", "not-an-engine"),
        ("Failing", "cannot-open"),
        ("Nothing", "not-an-engine"),
        ("Missing", "cannot-import"),
    ],
)
@pytest.mark.parametrize("command", ["synth", "evaluate", "check"])
def test_what_cannot_be_opened_is_the_fault_of_what_was_named(typed, command, engine, code):
    done = typed(command, engine)
    assert done.code == 2
    assert done.err.startswith(f"hedgerow [{code}]: ")
    assert "Zaphod" not in done.err


@pytest.mark.parametrize("engine", ["Miscounting", "Misreading"])
def test_an_error_inside_it_is_not_called_ours(typed, engine):
    done = typed("synth", engine)
    assert done.code == 1
    assert "hedgerow [internal]: an error in your engine (there): " in done.err
    assert "at there.py:" in done.err
    assert "\n  there.py:" in done.err  # every step through its own code
    assert "Zaphod" not in done.err


def test_a_file_behind_an_engine_is_an_input_and_not_written_over(typed, people):
    private = (people / "people.parquet").read_bytes()
    refused = typed("synth", "Handing", "--release", "people.parquet", "--overwrite")
    assert refused.code == 2
    assert "is the private table itself" in refused.err
    assert (people / "people.parquet").read_bytes() == private


def test_an_engine_that_commands_could_not_open_does_not_pass():
    from hedgerow.private.engines import open_engine
    from hedgerow.private.engines.arrow import ArrowEngine

    class Lacking(ArrowEngine):
        def __init__(self, location):
            super().__init__(location)

    with pytest.raises(Violation, match="so that commands can open it"):
        check_engine(lambda table, encoding: Lacking(open_engine(table).source))

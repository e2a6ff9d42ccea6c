"""The commands and their options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hedgerow import __version__
from hedgerow.cli.ledger import app as ledger_app
from hedgerow.cli.schema import app as schema_app
from hedgerow.errors import OptionError
from hedgerow.progress import Limits

app = typer.Typer(
    help="Turn a private table into a synthetic one that anyone may read, under differential privacy.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(schema_app, name="schema")
app.add_typer(ledger_app, name="ledger")


MaxMemory = Annotated[str, typer.Option(help="What the model in the release may take, beside the rows.")]
AllowModel = Annotated[
    list[str] | None,
    typer.Option(help="package.module:Class of a model made elsewhere that you trust: its code is run; repeatable."),
]


def _version(wanted: bool) -> None:
    if wanted:
        print(f"hedgerow {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = (
        False
    ),
) -> None:
    """Turn a private table into a synthetic one that anyone may read, under differential privacy."""


def settings(pairs: list[str]) -> dict[str, str]:
    """--set option=value, given several times."""
    given: dict[str, str] = {}
    for pair in pairs:
        option, equals, value = pair.partition("=")
        if not equals:
            raise OptionError(f'--set takes option=value, got "{pair}". Nothing was read.')
        if option in given:
            raise OptionError(f'"{option}" is given twice, as "{given[option]}" and as "{value}". Nothing was read.')
        given[option] = value
    return given


def size(text: str) -> int:
    """4GB, 500MB, 2GiB or a number of bytes."""
    units = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
    number = text.strip().lower().removesuffix("b").removesuffix("i")
    unit = number[-1:] if number[-1:] in units else ""
    try:
        value = float(number.removesuffix(unit)) if unit else float(number)
        if not 1 << 26 <= value * units[unit] < 1 << 60:
            raise ValueError
    except ValueError:
        raise OptionError(
            f'"{text}" is not a size of at least 64MB; write for example 4GB or 500MB. Nothing was read.'
        ) from None
    return int(value * units[unit])


def seconds(text: str) -> float:
    """90, 90s, 10m or 2h."""
    units = {"s": 1, "m": 60, "h": 3600}
    number, unit = (text[:-1], text[-1]) if text[-1:] in units else (text, "s")
    try:
        value = float(number) * units[unit]
        if not 0 < value < 1e9:
            raise ValueError
    except ValueError:
        raise OptionError(f'"{text}" is not a time; write for example 90s, 10m or 2h. Nothing was read.') from None
    return value


def count(text: str) -> int:
    """1000, 1_000 or 1e9."""
    try:
        value = float(text)
        if not (value.is_integer() and 0 <= value < 1e15):
            raise ValueError
    except (ValueError, OverflowError):
        raise OptionError(f'"{text}" is not a number of rows below 1e15; write for example 1000000 or 1e9.') from None
    return int(value)


@app.command()
def synth(
    table: Annotated[
        str,
        typer.Argument(help="CSV, Parquet or Arrow file, a folder of Parquet files, or a URL: duckdb://FILE/TABLE."),
    ],
    schema: Annotated[str, typer.Option("-s", "--schema", help="What the columns may hold: a file, or preset:NAME.")],
    epsilon: Annotated[
        float | None,
        typer.Option("-e", "--epsilon", help="Privacy budget; smaller is more private. A parameters.json has its own."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", dir_okay=False, help=".csv, .parquet or .arrow file to write.")
    ] = None,
    delta: Annotated[float, typer.Option(help="0 gives pure ε with Laplace noise.")] = 1e-9,
    method: Annotated[str | None, typer.Option("-m", "--method", help="See: hedgerow methods.")] = None,
    set_: Annotated[list[str] | None, typer.Option("--set", help="Method option, option=value; repeatable.")] = None,
    workload: Annotated[
        str | None, typer.Option(help="Marginals that matter: a degree (1, 2, 3) or a file; for methods that ask.")
    ] = None,
    target: Annotated[
        str | None, typer.Option(help="A column whose marginals matter more; for methods with a workload.")
    ] = None,
    public: Annotated[
        str | None,
        typer.Option(help="A table of the same columns that is public, whatever the private rows are."),
    ] = None,
    rows: Annotated[
        int | None,
        typer.Option(min=1, help="Rows out (default: the noisy estimate). Do not type in the true number of rows."),
    ] = None,
    release: Annotated[
        Path | None, typer.Option(dir_okay=False, help="Release file (default: beside the output).")
    ] = None,
    report: Annotated[
        Path | None, typer.Option(dir_okay=False, help="A page (.html) about the release; may be published.")
    ] = None,
    ledger: Annotated[Path | None, typer.Option(help="Lifetime ledger of the dataset; refuses overspend.")] = None,
    sign: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="Ed25519 private key (PEM) to sign the release with."),
    ] = None,
    max_memory: Annotated[str, typer.Option(help="For example 4GB.")] = "4GB",
    max_time: Annotated[
        str | None, typer.Option(help="For the work that needs no data, for example 10m; rounds end early.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the post-processing stream only.")] = 0,
    unsafe_noise_seed: Annotated[
        int | None, typer.Option(min=0, help="Tests and public benchmarks only: voids the guarantee.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace files that exist already.")] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with a run that was stopped, without paying again.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be asked, at what noise; the table is not opened.")
    ] = False,
    json_: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No progress.")] = False,
) -> None:
    """Make a synthetic table and its release from a private table."""
    from hedgerow.cli.runs import wanted
    from hedgerow.cli.synth import Request, dry, run_all
    from hedgerow.methods import DEFAULT

    short = {"workload": workload, "target": target}
    asked = [f"{option}={value}" for option, value in short.items() if value is not None]
    requests = [
        Request(
            table=table,
            schema=schema,
            epsilon=each.epsilon,
            delta=each.delta,
            method=method or DEFAULT,
            options=settings([*(set_ or []), *asked]),
            out=each.named(out),
            rows=rows,
            most_rows=each.most_rows,
            public=public,
            release=each.named(release),
            report=each.named(report),
            ledger=ledger,
            sign=sign,
            limits=Limits(size(max_memory), None if max_time is None else seconds(max_time)),
            seed=seed,
            unsafe_noise_seed=unsafe_noise_seed,
            json=json_,
            quiet=quiet,
            overwrite=overwrite,
            resume=resume,
        )
        for each in wanted(schema, epsilon, delta)
    ]
    if not dry_run:
        run_all(requests)
    else:
        for request in requests:
            dry(request)


@app.command()
def sample(
    release: Annotated[Path, typer.Argument(help="A release file.")],
    out: Annotated[
        Path, typer.Option("-o", "--out", help=".csv, .parquet or .arrow file to write, or a folder of Parquet files.")
    ],
    rows: Annotated[str | None, typer.Option(help="For example 1e9. Default: the noisy estimate.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Another seed gives other rows.")] = 0,
    workers: Annotated[int, typer.Option(min=1, help="Processes that fill a folder; the rows are the same.")] = 1,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No progress.")] = False,
    max_memory: MaxMemory = "8GB",
    allow_model: AllowModel = None,
) -> None:
    """Draw more rows from a release. Costs no privacy. Repeat the command to go on with a folder."""
    from hedgerow.cli.releases import sample_rows
    from hedgerow.release.bundle import Trust

    trust = Trust(tuple(allow_model or ()), size(max_memory))
    sample_rows(release, out, None if rows is None else count(rows), seed, workers, quiet, overwrite, trust)


@app.command()
def verify(
    release: Annotated[Path, typer.Argument(help="A release file.")],
    key: Annotated[str | None, typer.Option(help="Ed25519 public key (hex) that must have signed it.")] = None,
    ledger: Annotated[Path | None, typer.Option(help="The dataset's ledger, which must hold its record.")] = None,
    json_: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
    max_memory: MaxMemory = "8GB",
    allow_model: AllowModel = None,
) -> None:
    """Recompute the guarantee of a release from its certificate, independently of the run that made it."""
    from hedgerow.cli.releases import verify_release
    from hedgerow.release.bundle import Trust

    verify_release(release, key, ledger, json_, Trust(tuple(allow_model or ()), size(max_memory)))


@app.command()
def evaluate(
    real: Annotated[str, typer.Argument(help="The private table.")],
    synthetic: Annotated[str, typer.Argument(help="The synthetic table.")],
    schema: Annotated[
        Path, typer.Option("-s", "--schema", help="The schema, or the release (.release) that holds it.")
    ],
    metrics: Annotated[
        str | None,
        typer.Option(
            help="Comma-separated, default all: tvd1, tvd2, tvd3, worst, k_marginal, range3, range5, conjunctions, "
            "pearson, kendall, cramers_v, subsample, pmse, unique_matches, apparent_matches, svm, boosting."
        ),
    ] = None,
    target: Annotated[
        str | None, typer.Option(help="The column that classifiers predict; without it they are left out.")
    ] = None,
    identifiers: Annotated[
        str | None, typer.Option(help="Columns that an outsider may know, comma-separated: for apparent_matches.")
    ] = None,
    report: Annotated[Path | None, typer.Option(dir_okay=False, help="A page (.html) to write. PRIVATE.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing page.")] = False,
    ledger: Annotated[Path | None, typer.Option(help="The ledger that notes the look at exact data.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="The same seed asks the same queries.")] = 0,
    json_: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No progress.")] = False,
) -> None:
    """PRIVATE: compare a synthetic table with the real rows."""
    from hedgerow.cli.evaluate import run

    run(real, synthetic, schema, metrics, target, identifiers, ledger, report, overwrite, seed, json_, quiet)


@app.command()
def compare(
    table: Annotated[str, typer.Argument(help="The private table.")],
    schema: Annotated[str, typer.Option("-s", "--schema", help="What the columns may hold: a file, or preset:NAME.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="Folder for the results; one that exists is gone on with.")],
    methods: Annotated[str, typer.Option(help="Comma-separated; package.module:Class for one made elsewhere.")] = (
        "hedge,aim,mst"
    ),
    epsilons: Annotated[str, typer.Option(help="Comma-separated.")] = ".1,1,10",
    runs: Annotated[int, typer.Option(min=1, help="Runs of each method at each ε.")] = 3,
    delta: Annotated[float, typer.Option(help="0 gives pure ε with Laplace noise.")] = 1e-9,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="Method option, METHOD.option=value; repeatable.")
    ] = None,
    tables: Annotated[
        list[str] | None, typer.Option("--table", help="A synthetic table made elsewhere, NAME@ε=FILE; repeatable.")
    ] = None,
    metrics: Annotated[
        str | None, typer.Option(help="As for evaluate; default tvd1 to tvd3, k_marginal, range3, and a few more.")
    ] = None,
    public: Annotated[
        str | None, typer.Option(help="A public table of the same columns, for methods that use one.")
    ] = (None),
    target: Annotated[str | None, typer.Option(help="The column that svm and boosting predict.")] = None,
    ledger: Annotated[Path | None, typer.Option(help="The dataset's ledger; every run is debited.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Run r uses seed + r, for every method.")] = 0,
    unsafe_noise_seed: Annotated[
        int | None, typer.Option(min=0, help="Public tables only: the same noise stream for every method.")
    ] = None,
    max_memory: Annotated[str, typer.Option(help="For the model of a run, for example 4GB.")] = "4GB",
    max_time: Annotated[str, typer.Option(help="After which a run is stopped, for example 10m.")] = "1h",
    retry: Annotated[bool, typer.Option("--retry", help="Run again what failed or timed out.")] = False,
    json_: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No progress.")] = False,
) -> None:
    """PRIVATE: run several methods on the private table and compare each result with the real rows."""
    from hedgerow.cli.compare import DEFAULT_METRICS, options_by_method, run
    from hedgerow.cli.compare import epsilons as numbers
    from hedgerow.cli.evaluate import words
    from hedgerow.compare import ForeignTable, Plan
    from hedgerow.private.evaluate.evaluation import settled_metrics

    wanted = words(metrics) if metrics is not None else [*DEFAULT_METRICS, *(["svm", "boosting"] if target else [])]
    plan = Plan(
        table=table,
        schema=schema,
        methods=tuple(words(methods)),
        epsilons=numbers(epsilons),
        runs=runs,
        metrics=tuple(settled_metrics(wanted, target, ())),
        delta=delta,
        options=options_by_method(set_ or []),
        tables=tuple(ForeignTable.parse(each) for each in tables or []),
        public=public,
        target=target,
        ledger=None if ledger is None else str(ledger),
        seed=seed,
        unsafe_noise_seed=unsafe_noise_seed,
        max_memory=size(max_memory),
        max_seconds=seconds(max_time),
    )
    run(plan, out, retry, json_, quiet)


@app.command()
def methods(name: Annotated[str | None, typer.Argument(help="A method; all of them if left out.")] = None) -> None:
    """What methods there are, what each guarantees, its options, its paper, and where ours differs."""
    from hedgerow.cli.methods import show

    show(name)


@app.command()
def audit(
    methods: Annotated[list[str] | None, typer.Argument(help="Methods; all of them if left out.")] = None,
    pairs: Annotated[int, typer.Option(min=6, help="Neighbouring tables to replay on, for each kind of noise.")] = 200,
    runs: Annotated[int, typer.Option(min=100, help="Runs on either side of the distinguishing game.")] = 4000,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", dir_okay=False, help="A page (.md) to write the table to.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing page.")] = False,
    json_: Annotated[bool, typer.Option("--json", help="One JSON array on stdout.")] = False,
) -> None:
    """Check that methods keep their promise, and that the check would notice if they did not. Takes minutes each."""
    from hedgerow.cli.audit import run

    run(methods or [], pairs, runs, out, overwrite, json_)


@app.command()
def example(
    name: Annotated[str, typer.Argument(help="census1940 or opm")],
    out: Annotated[
        Path, typer.Option("-o", "--out", dir_okay=False, help=".csv, .parquet or .arrow file; its schema goes beside.")
    ],
    rows: Annotated[int | None, typer.Option(min=1, help="Default: 661,967 for census1940, 1,000,000 for opm.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Another seed gives another table.")] = 0,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace files that exist already.")] = False,
) -> None:
    """Write a sample table (made up, so public) and its schema."""
    from hedgerow.cli.example import write_example

    write_example(name, out, rows, seed, overwrite)


@app.command()
def demo(
    out: Annotated[Path, typer.Option("-o", "--out", help="Folder to write to.")] = Path("demo"),
    rows: Annotated[int, typer.Option(min=1, help="Rows of the made-up private table.")] = 100_000,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace files that no demo made.")] = False,
) -> None:
    """Make a table, a synthetic version of it, its release and its page, from bundled sample data."""
    from hedgerow.cli.example import run_demo

    run_demo(out, rows, overwrite)

"""hedgerow compare: methods × ε × runs, beside floors and tables made elsewhere. PRIVATE."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

from hedgerow.cli.evaluate import PRIVATE
from hedgerow.compare import Plan, compare
from hedgerow.compare.grid import views_of
from hedgerow.errors import OptionError
from hedgerow.pages.comparison import best_methods, main_metric

DEFAULT_METRICS = ("tvd1", "tvd2", "tvd3", "k_marginal", "range3", "conjunctions", "subsample")


def run(plan: Plan, out: Path, retry: bool, as_json: bool, quiet: bool) -> None:
    """Fill in the grid, and say which method did best."""

    def say(line: str) -> None:
        if not quiet:
            print(line, file=sys.stderr, flush=True)

    if plan.ledger is None:
        say("hint: no --ledger was given; every run of a method is a release, and nothing adds them up.")
    rows = compare(plan, out, retry=retry, command=sys.argv, say=say)
    if as_json:
        print(json.dumps({"private": True, "out": str(out), "rows": rows}))
        return
    print(PRIVATE)
    done = [row for row in rows if row["status"] == "done"]
    views = views_of(plan, done)
    if views:
        main = main_metric(views)
        print(f"{main.name}: {main.meaning}")
        for epsilon, ranked in best_methods(done, main).items():
            print(f"ε = {epsilon:<5g} " + "   ".join(f"{name} {value:.4f}" for name, value in ranked))
        floors = {row["name"]: row[main.name] for row in done if row["kind"] == "floor" and main.name in row}
        print("floors    " + "   ".join(f"{name} {value:.4f}" for name, value in floors.items()))
    failed = len(rows) - len(done)
    if failed:
        print(f"{failed} of {len(rows)} cells did not end well; the page says why, --retry runs them again")
    print(f"{out / 'comparison.html'}: the page; {out / 'results.parquet'}: every run. PRIVATE too")


def epsilons(text: str) -> tuple[float, ...]:
    """.1,1,10"""
    try:
        values = tuple(float(word) for word in text.split(",") if word.strip())
        if not values or not all(0 < value < math.inf for value in values):
            raise ValueError
    except ValueError:
        raise OptionError(f'--epsilons takes numbers such as .1,1,10, got "{text}". Nothing was read.') from None
    return values


def options_by_method(pairs: list[str]) -> dict[str, dict[str, str]]:
    """--set METHOD.option=value, given several times."""
    given: dict[str, dict[str, str]] = {}
    for pair in pairs:
        left, equals, value = pair.partition("=")
        method, dot, option = left.rpartition(".")
        if not (equals and dot):
            raise OptionError(
                f'--set takes METHOD.option=value, for example aim.rounds=8, got "{pair}". Nothing was read.'
            )
        if option in given.setdefault(method, {}):
            raise OptionError(f'--set gives "{left}" twice. Nothing was read.')
        given[method][option] = value
    return given

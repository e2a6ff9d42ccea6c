"""Options that several methods have, each declared once."""

from __future__ import annotations

from hedgerow.methods.option import option
from hedgerow.methods.shared.workloads import read_workload


def workload(degree: str = "3") -> str:
    return option(
        degree,
        "marginals that matter: a degree, or a YAML or JSON file of column lists, each with a weight or not",
        read=read_workload,
    )


def target() -> str:
    return option("", "a column whose marginals weigh four times as much")


def rounds(default: float, help: str) -> float:
    return option(default, help, above=0)


def measuring(default: float, of: str = "a round's") -> float:
    return option(default, f"part of {of} budget that measures, the rest chooses", above=0, below=1)


def size(megabytes: float, when: str = ", reached as the budget is spent") -> float:
    return option(megabytes, f"largest model in MB{when}", at_least=0)


def worth(default: float, what: str) -> float:
    return option(default, f"leave out {what} whose expected noise exceeds this part of the rows", at_least=0)


def merge() -> float:
    return option(3.0, "merge values whose noisy count is below this many standard deviations", at_least=0)


def accounting() -> str:
    return option("gdp", "zcdp keeps the books as published, for comparisons only", one_of=("gdp", "zcdp"))

"""`hedgerow audit`: everything that can be checked about a method's promise, and that the checks can fail."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hedgerow.audit.game import RUNS, Verdict, play
from hedgerow.audit.method import KINDS, check_method
from hedgerow.audit.mutants import MUTANTS, Mutant
from hedgerow.audit.replay import Violation
from hedgerow.methods import build
from hedgerow.methods.method import Method

PAIRS = 200
MUTANT_PAIRS = 12 * len(KINDS)


@dataclass(frozen=True)
class Finding:
    """What came of one method's audit."""

    method: str
    pairs: int
    violation: str | None
    """Why a replay failed, where one did."""
    verdict: Verdict
    caught: tuple[str, ...]
    """The mutants that the replays tell from the method."""

    @property
    def problems(self) -> list[str]:
        found = [] if self.violation is None else [self.violation]
        if not self.verdict.kept:
            found.append(f"leaks at least μ = {self.verdict.bound:.2f}, promises {self.verdict.claim:.2f}")
        if self.verdict.enough and not self.verdict.alive:
            found.append(f"the game sees only μ = {self.verdict.bound:.2f} of {self.verdict.claim:.2f}: a dead test")
        return [*found, *(f'the mutant "{name}" was not caught' for name in MUTANTS if name not in self.caught)]

    @property
    def doubts(self) -> list[str]:
        """What was not settled, for or against the method."""
        verdict = self.verdict
        if verdict.enough or verdict.alive:
            return []
        return [
            f"too few runs: 2 × {verdict.runs:,} let the game see only μ = {verdict.bound:.2f} of {verdict.claim:.2f}; "
            f"2 × {RUNS:,} would do"
        ]

    @property
    def result(self) -> str:
        """In a few words."""
        return "; ".join([*self.problems, *self.doubts]) or "kept"


def audit(name: str, pairs: int = PAIRS, runs: int = RUNS, on_step: Callable[[], None] = lambda: None) -> Finding:
    """Replays on neighbours under δ > 0 and δ = 0, the distinguishing game, and mutants."""
    method: Method = build(name)
    violation = None
    try:
        check_method(method, count=pairs, seed=1)
    except Violation as problem:
        violation = str(problem)
    verdict = play(method, runs, on_step)
    caught = tuple(mutant for mutant, breaking in MUTANTS.items() if is_caught(method, breaking))
    return Finding(name, pairs, violation, verdict, caught)


def is_caught(method: Method, breaking: Mutant, pairs: int = MUTANT_PAIRS) -> bool:
    """Whether the replays notice the broken rule."""
    with breaking(method) as broken:
        try:
            check_method(broken, count=pairs)
        except Violation:
            return True
    return False


def page(findings: Sequence[Finding]) -> str:
    """docs/understand/audit.md."""
    lines = [
        "# Audit",
        "",
        "Written by `make audit`, which runs `hedgerow audit` on every method. What each column means is on the page",
        "[Checks](../extend/checks.md).",
        "",
        "| method | replays on neighbours | promised μ | certified leak | runs | mutants caught | result |",
        "|---|---|---|---|---|---|---|",
    ]
    for each in findings:
        verdict = each.verdict
        replays = f"{2 * each.pairs}, " + ("all alike" if each.violation is None else "NOT alike")
        lines.append(
            f"| `{each.method}` | {replays} | {verdict.claim:.3f} | at least {verdict.bound:.3f} | "
            f"2 × {verdict.runs:,} | {len(each.caught)} of {len(MUTANTS)} | {each.result} |"
        )
    lines += ["", "Mutants: " + ", ".join(MUTANTS) + "."]
    return "\n".join(lines) + "\n"

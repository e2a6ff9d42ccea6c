"""hedgerow audit: does a method keep its promise, and would we notice if it did not?"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from hedgerow.audit.report import Finding


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
    """Check that methods keep their promise; minutes for each.

    And that the check would notice if they did not. Two at a time. Fails if a method does not keep its promise, or if
    too few runs were played to tell.

    Examples:
        hedgerow audit independent
        hedgerow audit -o audit.md
    """
    from hedgerow.audit.game import RUNS
    from hedgerow.audit.report import page
    from hedgerow.errors import HedgerowError, OptionError
    from hedgerow.methods import build, names
    from hedgerow.release.files import whole_file
    from hedgerow.run.outputs import check_outputs

    chosen = methods or list(names())
    for name in chosen:
        build(name)  # a name that is not known is refused before an hour has passed
    if out is not None:
        check_outputs([(out, ())], {}, overwrite=overwrite)
    findings = []
    for finding in _findings(chosen, pairs, runs):
        findings.append(finding)
        if not json_:
            print(_line(finding), flush=True)
    if json_:
        said = [asdict(each) | {"problems": each.problems, "doubts": each.doubts} for each in findings]
        print(json.dumps(said))
    if out is not None:
        with whole_file(out, replace=overwrite) as partial:
            partial.write_text(page(findings), encoding="utf-8", newline="\n")
    failed = [finding.method for finding in findings if finding.problems]
    if failed:
        raise HedgerowError("audit-failed", f"the audit of {', '.join(failed)} failed.")
    unsettled = [finding.method for finding in findings if finding.doubts]
    if unsettled:
        raise OptionError(
            "audit-unsettled",
            f"too few runs to settle the audit of {', '.join(unsettled)}. Hint: --runs {RUNS}, or more.",
        )


def _findings(methods: Sequence[str], pairs: int, runs: int) -> Iterator[Finding]:
    from hedgerow.audit.report import audit
    from hedgerow.release.workers import in_processes

    workers = min(2, os.cpu_count() or 1, len(methods))
    if workers < 2:
        yield from (audit(name, pairs, runs) for name in methods)
        return
    found: dict[int, Finding] = {}
    shown = 0
    print(f"auditing: 0 of {len(methods)} done", file=sys.stderr)
    with closing(in_processes(audit, [(name, pairs, runs) for name in methods], workers)) as findings:
        for number, finding in findings:
            found[number] = finding
            print(f"auditing: {len(found)} of {len(methods)} done", file=sys.stderr)
            while shown in found:
                yield found[shown]
                shown += 1


def _line(finding: Finding) -> str:
    verdict = finding.verdict
    return (
        f"{finding.method:14} {2 * finding.pairs} replays; promises μ = {verdict.claim:.2f}, certainly leaks "
        f"{verdict.bound:.2f} (2 × {verdict.runs:,} runs); {len(finding.caught)} mutants caught: {finding.result}"
    )

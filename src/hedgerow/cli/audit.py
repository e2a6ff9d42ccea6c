"""hedgerow audit: does a method keep its promise, and would we notice if it did not?"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

from hedgerow.audit.report import Finding, audit, page
from hedgerow.cli.outputs import check_outputs
from hedgerow.errors import HedgerowError
from hedgerow.methods import build, names
from hedgerow.release.files import whole_file
from hedgerow.release.workers import in_processes


def run(methods: Sequence[str], pairs: int, runs: int, out: Path | None, overwrite: bool, as_json: bool) -> None:
    """Audit the methods, two at a time; fails if one does not keep its promise."""
    chosen = list(methods) or list(names())
    for name in chosen:
        build(name)  # a name that is not known is refused before an hour has passed
    if out is not None:
        check_outputs([(out, ())], {}, overwrite=overwrite)
    findings = []
    for finding in _findings(chosen, pairs, runs):
        findings.append(finding)
        if not as_json:
            print(_line(finding), flush=True)
    if as_json:
        print(json.dumps([asdict(finding) | {"problems": finding.problems} for finding in findings]))
    if out is not None:
        with whole_file(out, replace=overwrite) as partial:
            partial.write_text(page(findings), encoding="utf-8")
    failed = [finding.method for finding in findings if finding.problems]
    if failed:
        raise HedgerowError(f"the audit of {', '.join(failed)} failed.")


def _findings(methods: Sequence[str], pairs: int, runs: int) -> Iterator[Finding]:
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
    result = "; ".join(finding.problems) or "kept"
    return (
        f"{finding.method:14} {2 * finding.pairs} replays; promises μ = {verdict.claim:.2f}, certainly leaks "
        f"{verdict.bound:.2f} (2 × {verdict.runs:,} runs); {len(finding.caught)} mutants caught: {result}"
    )

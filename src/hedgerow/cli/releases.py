"""hedgerow sample and hedgerow verify: what anyone can do with a release."""

from __future__ import annotations

import importlib.util
import json
import os
from pathlib import Path

from hedgerow.cli.outputs import check_outputs
from hedgerow.cli.progress import TerminalProgress
from hedgerow.errors import ReleaseError, visible
from hedgerow.private.ledger import confirm_entry
from hedgerow.progress import Limits
from hedgerow.release.bundle import Release, Trust
from hedgerow.release.bundle import verify as verify_file
from hedgerow.release.certificate import OPINION, second_opinion
from hedgerow.release.files import TABLE_SUFFIXES, write_table
from hedgerow.release.parts import write_parts


def sample_rows(
    release: Path,
    out: Path,
    rows: int | None,
    seed: int,
    workers: int,
    quiet: bool,
    overwrite: bool,
    trust: Trust,
) -> None:
    """Rows from a release, into a file or into a folder of parts; the same seed gives the same rows."""
    if not out.suffix or os.path.isdir(out):
        count, written = write_parts(release, out, rows, seed, workers, TerminalProgress(Limits(), quiet), trust=trust)
        print(f"{out}: {count:,} synthetic rows; {written:,} parts written now")
        return
    check_outputs([(out, TABLE_SUFFIXES)], {"release": release}, overwrite=overwrite)
    loaded = Release.load(release, **trust._asdict())
    progress = TerminalProgress(Limits(), quiet)
    with progress.phase("draw rows"):
        warning = " ".join(loaded.certificate.statements()) if loaded.certificate.void else None
        written = write_table(out, loaded.encoding.arrow_schema, loaded.batches(rows, seed), warning, replace=overwrite)
    print(f"{out}: {written:,} synthetic rows")


def verify_release(path: Path, key: str | None, ledger: Path | None, as_json: bool, trust: Trust) -> None:
    """Say line by line what was confirmed; exit 2 at the first thing that was not."""
    release, confirmed = verify_file(path, **trust._asdict())
    if ledger is not None:
        confirmed.append(confirm_entry(ledger, release.certificate.ledger))
    if key is not None and release.signer != key.lower():
        signed = f"signed by {release.signer}, not by {key}" if release.signer else "not signed"
        raise ReleaseError(f'"{path}" is {signed}.')
    if release.certificate.guarantee and importlib.util.find_spec("dp_accounting"):
        epsilon = second_opinion(release.certificate)
        stated = release.certificate.guarantee.epsilon
        if epsilon is not None:
            if epsilon > stated * (1 + OPINION):
                raise ReleaseError(
                    f"dp-accounting computes ε = {epsilon:.6g} where the certificate states {stated:.6g}."
                )
            confirmed.append(f"dp-accounting's privacy loss distributions agree: ε = {epsilon:.6g}")
    if as_json:
        about = {"release": str(path), "signer": release.signer, "confirmed": confirmed}
        print(json.dumps({**about, "certificate": release.certificate.to_json()}))
    else:
        for line in confirmed:
            print(f"{'✗' if line.startswith('NO GUARANTEE') else '✓'} {visible(line)}")
        print()
        for statement in release.certificate.statements():
            print(f"- {visible(statement)}")
    if release.certificate.void:
        raise ReleaseError(f'"{path}" is intact, but it carries no privacy guarantee.')

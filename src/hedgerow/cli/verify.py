"""hedgerow verify: what anyone can check about a release."""

from __future__ import annotations

import importlib.util
import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from hedgerow.cli.ends import say_next
from hedgerow.cli.options import AllowColumn, AllowModel, Json, ModelMemory, Quiet, size
from hedgerow.cli.progress import waiting


def verify(
    release: Annotated[
        Path,
        typer.Argument(
            help="A release file, a folder that hedgerow publish wrote, or a .json of hedgerow ask --confirm."
        ),
    ],
    key: Annotated[str | None, typer.Option(help="Ed25519 public key (hex) that must have signed it.")] = None,
    ledger: Annotated[Path | None, typer.Option(help="The dataset's ledger, which must hold its record.")] = None,
    json_: Json = False,
    quiet: Quiet = False,
    max_memory: ModelMemory = "8GB",
    allow_model: AllowModel = None,
    allow_column: AllowColumn = None,
) -> None:
    """Recompute the guarantee of a release from its certificate.

    Independently of the run that made it. Says line by line what was confirmed, and exits with 2 at the first thing
    that was not.

    Examples:
        hedgerow verify synthetic.release
        hedgerow verify synthetic.release --ledger people.ledger --json
        hedgerow verify published
    """
    from hedgerow.errors import ReleaseError, visible
    from hedgerow.private.ledger import confirm_entry
    from hedgerow.publish import folder
    from hedgerow.release import confirmation
    from hedgerow.release.bundle import Trust
    from hedgerow.release.bundle import verify as verify_file
    from hedgerow.release.certificate import OPINION, second_opinion

    trust = Trust(tuple(allow_model or ()), size(max_memory), tuple(allow_column or ()))
    doubt = None
    found: Any
    with waiting("check", quiet):
        if os.path.isdir(release):
            found, confirmed, signer, doubt = folder.verify(release, trust)
        elif release.suffix == ".json":
            found, confirmed = confirmation.verify(confirmation.read(release))
            signer = None
        else:
            folder.refuse_packed(release)
            found, confirmed = verify_file(release, **trust._asdict())
            signer = found.signer
    if ledger is not None:
        confirmed.append(confirm_entry(ledger, found.certificate.ledger))
    if key is not None and signer != key.lower():
        signed = f"signed by {signer}, not by {key}" if signer else "not signed"
        raise ReleaseError("not-signed", f'"{release}" is {signed}.')
    if found.certificate.guarantee and importlib.util.find_spec("dp_accounting"):
        with waiting("ask another accountant", quiet):
            epsilon = second_opinion(found.certificate)
        stated = found.certificate.guarantee.epsilon
        if epsilon is not None:
            if epsilon > stated * (1 + OPINION):
                raise ReleaseError(
                    "accountants-differ",
                    f"dp-accounting computes ε = {epsilon:.6g} where the certificate states {stated:.6g}.",
                )
            confirmed.append(f"dp-accounting's privacy loss distributions agree: ε = {epsilon:.6g}")
    if json_:
        given = found.certificate.guarantee
        about = {
            "release": str(release),
            "signer": signer,
            "confirmed": confirmed,
            "guarantee": given and asdict(given),  # a certificate of the first edition states another one
        }
        print(json.dumps({**about, "certificate": found.certificate.to_json()}))
    else:
        for line in confirmed:
            print(f"{'✗' if line.startswith('NO GUARANTEE') else '✓'} {visible(line)}")
        print()
        for statement in found.certificate.statements():
            print(f"- {visible(statement)}")
    if found.certificate.void:
        raise ReleaseError("no-guarantee", f'"{release}" is intact, but it carries no privacy guarantee.')
    if doubt is not None:
        raise doubt
    if not json_ and release.suffix != ".json" and not os.path.isdir(release):
        several = found.schema.several
        say_next(quiet, "sample", release, "-o", "more" if several else "more.csv", why="rows cost nothing")
        asked = several[-1] if several else "people"
        asked = asked if asked.isidentifier() else f'"{asked}"'
        say_next(quiet, "ask", release, f"SELECT COUNT(*) FROM {asked}", why="neither do answers")

"""An earlier release as what is believed beforehand: its rows stand where a public table would.

A release that was paid for may be used for anything, so starting from its model costs nothing new. What it told of
people who are in this table too was paid for then, and is not taken back: they pay for both.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedgerow.errors import OptionError, ReleaseError
from hedgerow.release.bundle import Release

if TYPE_CHECKING:
    from hedgerow.schema import Schema


@dataclass(frozen=True, eq=False)
class Prior:
    """A release with a guarantee, and the digest of its file."""

    release: Release
    digest: str

    @classmethod
    def load(cls, path: str | Path) -> Prior:
        """Read and checked as `verify` does; refused without a guarantee, as it may tell anything of anybody."""
        release = Release.load(path)
        if release.certificate.guarantee is None:
            raise OptionError(
                "prior-without-guarantee",
                f'the earlier release "{Path(path).name}" has no guarantee ({release.certificate.void}), so what is '
                "made with it would have none. Hint: give a release that was paid for, or leave out --prior.",
            )
        return cls(release, hashlib.sha256(Path(path).read_bytes()).hexdigest())

    def rows(self, schema: Schema) -> Any:
        """Rows of the release as a table of values, which this year's schema codes as it declares them."""
        lacking = [name for name in schema.columns if name not in self.release.schema.columns]
        if lacking:
            raise ReleaseError(
                "prior-lacks-column",
                f'the earlier release has no column "{lacking[0]}", which the schema declares. '
                "Hint: leave out --prior, or release the columns of both years.",
            )
        return self.release.sample()

    def to_json(self) -> dict[str, Any]:
        """What a certificate says of it."""
        given = self.release.certificate.guarantee
        assert given is not None
        return {"sha256": self.digest, "epsilon": given.epsilon, "delta": given.delta}

"""How moments are written as text: ISO, or as a `format` says, in and out.

A format is made of the directives of strftime that stand for digits and for names in English. It must tell every moment
that the column may hold from the others, so that what was written reads back as itself.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from hedgerow.coded.domain import IntArray
from hedgerow.errors import Fault

DIRECTIVES = "YymdjHIMSpbBaAf%"
EPOCH = datetime.datetime(1970, 1, 1)


def check_format(form: str, moments: Iterable[datetime.datetime]) -> None:
    """Refuse a format that does not bring these moments back."""
    strange = [letter for letter in re.findall(r"%(.?)", form, re.DOTALL) if letter not in DIRECTIVES or not letter]
    if strange:
        known = " ".join(f"%{letter}" for letter in DIRECTIVES)
        raise Fault("bad-format", f'format: "%{strange[0]}" is not one of {known}')
    for moment in moments:
        if read(moment.strftime(form), form) != (moment - EPOCH) // datetime.timedelta(seconds=1):
            raise Fault(
                "bad-format",
                f'format: "{form}" does not bring {moment.isoformat()} back, so it leaves out what may be there; '
                "use a longer `step`, or bounds that it can tell apart",
            )


def finest(form: str) -> str:
    """The finest step within a day that a format writes."""
    said = set(re.findall(r"%(.)", form, re.DOTALL))
    return "second" if said & {"S", "f"} else "minute" if "M" in said else "hour"


def read(text: str | None, form: str) -> float:
    """Seconds since 1970 of a moment that is written so; NaN if it is not."""
    try:
        moment = datetime.datetime.strptime((text or "").strip(), form)
        return (moment.replace(microsecond=0) - EPOCH).total_seconds()
    except (ValueError, OverflowError):
        return float("nan")


def write(seconds: IntArray, form: str) -> pa.Array:
    """Moments in that form; each distinct one is spelled once."""
    distinct, index = np.unique(seconds, return_inverse=True)
    spelled = [(EPOCH + datetime.timedelta(seconds=int(second))).strftime(form) for second in distinct]
    return pa.array(spelled, pa.string()).take(pa.array(index))

"""What a refusal is compared by: its code, which stays while sentences are improved; and the names and figures in it.

The sentences themselves stand in one place, tests/golden/errors.txt.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from hedgerow.errors import HedgerowError


@contextmanager
def refused(code: str, *held: str) -> Iterator[pytest.ExceptionInfo[HedgerowError]]:
    """What is done inside is refused with this code, and the message holds these texts."""
    with pytest.raises(HedgerowError) as caught:
        yield caught
    assert caught.value.code == code, f"{caught.value.code}: {caught.value}"
    for text in held:
        assert text in str(caught.value)


def code_in(stderr: str) -> str | None:
    """The code in the last line that a command said: hedgerow [unknown-column]: …"""
    found = re.match(r"hedgerow \[([a-z0-9-]+)\]: ", stderr.splitlines()[-1] if stderr else "")
    return found and found[1]

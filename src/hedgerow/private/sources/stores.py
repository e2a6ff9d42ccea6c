"""Tables that are files in an object store or on a web server: opened over the network, read block by block.

Credentials come from where the store's own tools look for them (environment, profiles, the role of a machine), never
from a URL, and no message repeats what a store says: its words may hold names, requests and signatures.
"""

from __future__ import annotations

import io
import os
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa

from hedgerow.errors import TableError

SCHEMES = ("s3", "gs", "abfs", "abfss", "https")
WEB_BLOCK = 1 << 22
PATIENCE = 60.0
_REASONS = (
    (r"NO_SUCH_BUCKET|NoSuchBucket|ContainerNotFound|bucket does not exist", "there is no such bucket"),
    (
        r"ACCESS_DENIED|EXPIRED|Expired|INVALID_ACCESS_KEY|INVALID_CLIENT_TOKEN|UNRECOGNIZED_CLIENT|SIGNATURE|"
        r"MISSING_AUTHENTICATION|AuthenticationFailed|UNAUTHENTICATED|PERMISSION_DENIED|HTTP 401|HTTP 403|"
        r"HTTP status 40[013]|HTTP Status Code: 40[013]",
        "the store does not accept the credentials that it found, or they have expired",
    ),
    (
        r"NETWORK_CONNECTION|curlCode|TIMEOUT|UNAVAILABLE|SLOW_DOWN|HTTP 5\d\d",
        "the store cannot be reached, or is too busy",
    ),
)


def in_store(table: object) -> bool:
    """Whether a table is named by the URL of a file, or of a folder of files, that is reached over the network."""
    return isinstance(table, str) and "://" in table and table.split("://", 1)[0].lower() in SCHEMES


def why(error: Exception) -> str | None:
    """Why a store refused, in words of ours; None where it is not a store that spoke."""
    if isinstance(error, _Refused):
        return error.reason
    said = str(error)
    return next((reason for words, reason in _REASONS if re.search(words, said)), None)


def s3_settings() -> dict[str, str]:
    """What the environment says of a store's server, beside who asks."""
    given = {
        "endpoint_override": os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL"),
        "region": os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION"),
    }
    return {name: value for name, value in given.items() if value}


class _Refused(OSError):
    def __init__(self, reason: str):
        super().__init__(reason)
        self.reason = reason


class Stored:
    """A file in a store, or a folder of them. Every opening sees what the first one saw, or is refused."""

    def __init__(self, url: str, within: str = ""):
        self.url = url
        self._within = within
        """The URL of the folder that is the table, where this is one of its files."""
        parts = urlsplit(url)
        if parts.query or parts.fragment or parts.password is not None or "?" in url:
            raise TableError(
                "credentials-in-url",
                "a URL of a table holds no password, no signature and no options. Hint: credentials belong where the "
                "store's own tools look for them (AWS_PROFILE, AWS_ACCESS_KEY_ID, GOOGLE_APPLICATION_CREDENTIALS, "
                "AZURE_STORAGE_ACCOUNT …).",
            )
        with _asking(self.what):
            self._store = _Web(url) if parts.scheme.lower() == "https" else _Bucket(url)
            self._state = self._store.state()

    @property
    def what(self) -> str:
        """As messages call it; folders on the way to a file are named after what rows hold, so they are left out."""
        return f'the file "{self.name}" of the table "{self._within}"' if self._within else f'the table "{self.url}"'

    @property
    def name(self) -> str:
        return self.url.rstrip("/").rpartition("/")[2]

    @property
    def parent(self) -> Stored | None:
        """The folder that it lies in, where there are folders."""
        above = self.url.rstrip("/").rpartition("/")[0]
        if above.endswith("/") or self.url.lower().startswith("https:"):
            return None
        return Stored(above)

    @property
    def exists(self) -> bool:
        return self._state is not None

    @property
    def is_folder(self) -> bool:
        return isinstance(self._state, str)

    @property
    def is_empty(self) -> bool:
        return not self.is_folder and self._state is not None and self._state[0] == 0

    def paths(self, *, deep: bool = True) -> list[str]:
        """Where the files of a folder lie in it, in order; unless `deep`, what lies in it itself, folders too."""
        with _asking(self.what):
            return self._store.below(deep)

    def file(self, path: str) -> Stored:
        """A file of this folder."""
        with _asking(self.what):
            return Stored(f"{self.url.rstrip('/')}/{path}", self.url)

    def stream(self, packed: str | None) -> Any:
        """From the beginning to the end."""
        self._refuse_change()
        opened = self._store.stream()
        return opened if packed is None else pa.CompressedInputStream(opened, packed)

    def opened(self) -> Any:
        """Wherever one looks."""
        self._refuse_change()
        return self._store.opened()

    def _refuse_change(self) -> None:
        if self._store.state() != self._state:
            raise TableError(
                "table-changed", f"{self.what} was changed while it was read. Hint: run again, on a copy if it changes."
            )

    def __str__(self) -> str:
        return self.url


class _Bucket:
    """Where pyarrow has a file system of its own."""

    def __init__(self, url: str):
        from pyarrow import fs

        scheme, location = url.split("://", 1)
        if scheme.lower() != "s3":
            self._system, self._path = fs.FileSystem.from_uri(url)
            return
        self._path = location.strip("/")
        self._system = fs.S3FileSystem(
            **s3_settings(),
            connect_timeout=10,
            request_timeout=PATIENCE,
            retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=3),
        )

    def state(self) -> Any:
        found = self._system.get_file_info(self._path)
        if found.type == found.type.NotFound:
            return None
        return (found.size, found.mtime_ns) if found.is_file else "folder"

    def below(self, deep: bool) -> list[str]:
        from pyarrow import fs

        found = self._system.get_file_info(fs.FileSelector(self._path, recursive=deep))
        return sorted(each.path.removeprefix(f"{self._path}/") for each in found if each.is_file or not deep)

    def stream(self) -> Any:
        return self._system.open_input_stream(self._path, compression=None)

    def opened(self) -> Any:
        return self._system.open_input_file(self._path)


class _Web:
    """A file on a web server that gives parts of it."""

    def __init__(self, url: str):
        self._url = url

    def state(self) -> Any:
        try:
            with self._asked("HEAD") as answer:
                return int(answer.headers.get("Content-Length", -1)), answer.headers.get("ETag", "")
        except urllib.error.HTTPError as error:
            if error.code in (404, 410):
                return None
            raise _Refused(why(OSError(f"HTTP {error.code}")) or "the server refused") from None

    def below(self, deep: bool) -> list[str]:
        return []

    def stream(self) -> Any:
        return pa.PythonFile(self._asked("GET"), "r")

    def opened(self) -> Any:
        length, _ = self.state()
        return pa.PythonFile(io.BufferedReader(_Parts(self._asked, length), WEB_BLOCK), "r")

    def _asked(self, method: str, part: str | None = None) -> Any:
        headers = {"Accept-Encoding": "identity", **({} if part is None else {"Range": f"bytes={part}"})}
        request = urllib.request.Request(self._url, method=method, headers=headers)
        try:
            return urllib.request.urlopen(request, timeout=PATIENCE)
        except urllib.error.HTTPError:
            raise
        except (urllib.error.URLError, TimeoutError, ConnectionError):
            raise _Refused("the server cannot be reached") from None


class _Parts(io.RawIOBase):
    """A file whose parts are asked for as they are needed."""

    def __init__(self, asked: Any, length: int):
        self._asked, self._length, self._place = asked, length, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: self._length}[whence]
        self._place = base + offset
        return self._place

    def tell(self) -> int:
        return self._place

    def readinto(self, room: Any) -> int:
        wanted = min(len(room), self._length - self._place)
        if wanted <= 0:
            return 0
        with self._asked("GET", f"{self._place}-{self._place + wanted - 1}") as answer:
            if answer.status != 206:
                raise _Refused("the server does not give parts of a file; download it first")
            read = answer.read(wanted)
        room[: len(read)] = read
        self._place += len(read)
        return len(read)


@contextmanager
def _asking(what: str) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = why(error) or "its URL leads nowhere that can be read"
        raise TableError("store-failed", f"{what} cannot be read: {reason}. Nothing was changed there.") from None

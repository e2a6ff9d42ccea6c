"""Whether two ways of naming a table lead to the same rows.

What is learnt from a public table is not paid for, so the private one may not be handed in again under another name:
another spelling of its path, a link, a file of its folder, another URL of its database. No row is read to find out, so
a copy is not noticed; where two names may be one table, they are taken for one.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from hedgerow.errors import TableError
from hedgerow.private.engines.sql.location import is_url
from hedgerow.private.sources.lakes import folder_of
from hedgerow.private.sources.source import parquet_files


def refuse_as_public(public: Any, table: Any) -> None:
    """What is learnt from a public table is not paid for, so the private table itself cannot be it."""
    if same_table(public, table):
        raise TableError(
            "private-as-public",
            "the private table cannot be its own public one, nor can a part of it: what is learnt from a public table "
            "is not paid for. Hint: name a table that anyone may read, or none.",
        )


def same_table(public: Any, table: Any) -> bool:
    """Whether the public table may be the private one, or a file of its folder."""
    if not all(isinstance(each, str | os.PathLike) for each in (public, table)):
        return public is table
    first, second = os.fspath(public), os.fspath(table)
    places = [_local_path(each) for each in (first, second)]
    if places[0] is not None and places[1] is not None:
        return _share_files(places[0], places[1])
    kinds = [_scheme(each) for each in (first, second)]
    if kinds[0] != kinds[1] or kinds[0] not in _SAME:
        return bool(first == second)
    return _SAME[kinds[0]](*(folder_of(each).split("://", 1)[1] for each in (first, second)))


def _scheme(given: str) -> str:
    scheme = given.split("://")[0].lower() if is_url(given) else ""
    return {"postgresql": "postgres", "abfss": "abfs"}.get(scheme, scheme)


def _local_path(given: str) -> Path | None:
    """The path of a file or folder on this machine, also where Spark is to read it."""
    if not is_url(given):
        return Path(folder_of(given))
    location = given.split("://", 1)[1].removeprefix("file://").removeprefix("file:")
    return Path(location) if _scheme(given) == "spark" and "/" in location and "://" not in location else None


def _share_files(public: Path, table: Path) -> bool:
    """Whether some file is in both, under whatever name, or the public path lies in the private folder."""
    here, there = (Path(os.path.realpath(path)) for path in (public, table))
    if here == there or there in here.parents:
        return True
    return not set(_identities(here)).isdisjoint(_identities(there))


def _identities(path: Path) -> Iterator[tuple[int, int]]:
    """Device and number of each file of a table: the same for every link to it."""
    for file in parquet_files(path) if path.is_dir() else [path]:
        try:
            found = file.stat()
        except OSError:
            continue
        yield found.st_dev, found.st_ino


def _same_in_duckdb(first: str, second: str) -> bool:
    files, _, names = zip(*(location.rpartition("/") for location in (first, second)), strict=True)
    return _share_files(Path(files[0]), Path(files[1])) and _same_name(*(_in_schema(name, "main") for name in names))


def _same_in_postgres(first: str, second: str) -> bool:
    """User names do not matter: two may read one table."""
    (server, database, name), (its_server, its_database, its_name) = (
        [*location.split("/", 2), "", ""][:3] for location in (first, second)
    )
    return (
        unquote(database) == unquote(its_database)
        and _same_name(unquote(name), unquote(its_name))
        and _same_server(server, its_server)
    )


def _same_in_spark(first: str, second: str) -> bool:
    """Names in a catalogue; of paths that are not on this machine, their spelling."""
    if "/" in first or "/" in second:
        return first.rstrip("/") == second.rstrip("/")
    return _same_name(first, second)


def _same_in_store(first: str, second: str) -> bool:
    """One may be a file in the folder of the other."""
    public, table = ([part for part in unquote(each).split("/") if part] for each in (first, second))
    return public[: len(table)] == table or table[: len(public)] == public


_SAME: dict[str, Callable[[str, str], bool]] = {
    **dict.fromkeys(("s3", "gs", "abfs", "https"), _same_in_store),
    "duckdb": _same_in_duckdb,
    "postgres": _same_in_postgres,
    "spark": _same_in_spark,
}


def _in_schema(name: str, usual: str) -> str:
    return name if "." in name else f"{usual}.{name}"


def _same_name(first: str, second: str) -> bool:
    """Whether SCHEMA.TABLE and TABLE may be one: what is left out may be anything, and case may not matter."""
    pairs = zip(reversed(first.casefold().split(".")), reversed(second.casefold().split(".")), strict=False)
    return all(one == other for one, other in pairs)


def _same_server(first: str, second: str) -> bool:
    (host, port), (its_host, its_port) = (_address(server) for server in (first, second))
    return port == its_port and not _machines(host).isdisjoint(_machines(its_host))


def _address(server: str) -> tuple[str, str]:
    """Host and port; what a URL leaves out comes from the environment, as libpq reads it."""
    address = server.rpartition("@")[2]
    host, _, port = address.rpartition(":") if address.rpartition(":")[2].isdigit() else (address, "", "")
    host = unquote(host).strip("[]") or os.environ.get("PGHOSTADDR") or os.environ.get("PGHOST", "")
    return host, port or os.environ.get("PGPORT", "5432")


def _machines(host: str) -> set[str]:
    """The names and addresses of a host; a socket is on this machine."""
    name = host.casefold().rstrip(".")
    if not name or name.startswith(("/", "@")):
        name = "localhost"
    try:
        found = {str(entry[4][0]) for entry in socket.getaddrinfo(name, None)}
    except (OSError, UnicodeError):
        found = set()
    local = any(each.startswith("127.") or each == "::1" for each in (name, *found))
    return {name, *found, *(["localhost"] if local else [])}

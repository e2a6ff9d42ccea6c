"""A release: the model, the way back to columns, the noisy answers and the certificate, in one file.

The file is a zip of JSON and .npy members: no pickle, no code, nothing that runs when it is read. A manifest holds
the SHA-256 of every member, and a signature, where there is one, signs the manifest.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hedgerow.coded.domain import Counts, Domain, Marginal
from hedgerow.coded.measurement import Answer, Measurement, Noise
from hedgerow.coded.query import MarginalQuery, Query, TreeQuery
from hedgerow.errors import OptionError, ReleaseError, listing, suggestion
from hedgerow.models import load as load_model
from hedgerow.models.model import Model, State, block_coins, block_sizes
from hedgerow.release.certificate import Certificate, check
from hedgerow.release.files import whole_file

if TYPE_CHECKING:
    import pyarrow as pa

    from hedgerow.schema import Encoding, Schema

LOCAL_HEADER, LISTED_HEADER, END_OF_LIST = 30, 46, 22
"""Bytes of a ZIP file around a member, in the list of members, and after it, beside names."""
DOUBTFUL_ROWS = 100_000
"""Rows that are drawn at most where nobody said how many and the estimate is mostly noise."""
LARGEST = 4 << 30
"""Bytes that a release may unpack to."""


@dataclass(frozen=True, eq=False)
class ModelAnswer:
    """The model's counts over a marginal, and the standard error of a cell where just this was measured."""

    attributes: Marginal
    counts: Counts
    standard_error: float | None


class Release:
    """Everything that may leave the private side, and all that is needed to make rows of it."""

    def __init__(
        self,
        schema: Schema,
        model: Model,
        certificate: Certificate,
        answers: Sequence[Answer],
        signer: str | None = None,
    ):
        self.schema = schema
        self.model = model
        self.certificate = certificate
        self.answers = tuple(answers)
        self.signer = signer
        self._encoding: Encoding | None = None

    @property
    def encoding(self) -> Encoding:
        if self._encoding is None:
            self._encoding = self.schema.encoding()
        return self._encoding

    @property
    def guarantee(self) -> Any:
        """(ε, δ) for this release, or None where it was voided."""
        return self.certificate.guarantee

    @property
    def estimated_rows(self) -> int:
        """The noisy estimate of the number of rows; at most `DOUBTFUL_ROWS` where that is mostly noise."""
        rows = max(1, round(self.model.total))
        return min(rows, DOUBTFUL_ROWS) if self.rows_are_noise else rows

    @property
    def rows_are_noise(self) -> bool:
        """Whether the best sum of noisy counts is off by more than half of the estimated number of rows."""
        measured = [measurement for answer in self.answers for measurement in answer.measurements]
        errors = [math.sqrt(measurement.query.cells) * measurement.std for measurement in measured]
        return bool(errors) and min(errors) > self.model.total / 2

    def batches(self, rows: int | None = None, seed: int = 0) -> Iterator[pa.Table]:
        """Rows some at a time, from blocks of 2²⁰; block b depends only on the release, the seed, b and its size."""
        for number, size in enumerate(block_sizes(self.estimated_rows if rows is None else rows)):
            yield from self.block(size, seed, number)

    def block(self, size: int, seed: int, number: int) -> Iterator[pa.Table]:
        """One block of a draw, some rows at a time."""
        coins = block_coins(seed, number)
        return self.encoding.decode_in_slices(self.model.draw(size, coins), coins)

    def sample(self, rows: int | None = None, seed: int = 0) -> pa.Table:
        """An Arrow table of `rows` synthetic rows (default: the noisy estimate of how many there are)."""
        import pyarrow as pa

        if rows is not None and rows < 0:
            raise OptionError(f"the number of rows must not be negative, got {rows}.")
        return pa.concat_tables([self.encoding.arrow_schema.empty_table(), *self.batches(rows, seed)])

    def table(self) -> pa.Table:
        """The synthetic table with its default number of rows and seed."""
        return self.sample()

    def to_pandas(self) -> Any:
        return self.table().to_pandas()

    def to_polars(self) -> Any:
        import polars

        return polars.from_arrow(self.table())

    def to_spark(self, session: Any, rows: int | None = None, seed: int = 0) -> Any:
        """The rows of `sample` as a Spark frame that the workers fill."""
        from hedgerow.release import spark

        return spark.frame(self, session, self.estimated_rows if rows is None else rows, seed)

    def marginal(self, columns: Sequence[str]) -> ModelAnswer:
        """The model's answer for some columns, over the attributes that code them."""
        known = self.encoding.columns
        for column in columns:
            if column not in known:
                raise OptionError(f'unknown column "{column}"; columns: {listing(known)}.{suggestion(column, known)}')
        attributes = [name for column in columns for name in self.encoding.attributes_of(column)]
        marginal = self.model.domain.marginal(attributes)
        measured = [
            measurement.std
            for answer in self.answers
            for measurement in answer.measurements
            if measurement.kept is None and measurement.query.description.keys() == {"attributes", "cells"}
            if measurement.query.attributes == marginal
        ]
        return ModelAnswer(marginal, self.model.marginal(marginal), min(measured, default=None))

    # ------------------------------------------------------------ files

    def save(self, path: str | Path, sign_with: str | Path | None = None, *, overwrite: bool = True) -> None:
        """Write the release whole, signed with an Ed25519 private key (PEM) if one is given.

        Without `overwrite` another file of that name is left alone, and OptionError says so.
        """
        members = self._members()
        manifest = {name: hashlib.sha256(data).hexdigest() for name, data in members.items()}
        members["manifest.json"] = _json(manifest)
        if sign_with is not None:
            members["signature.json"] = _json(_sign(members["manifest.json"], Path(sign_with)))
        with whole_file(Path(path), replace=overwrite) as partial, zipfile.ZipFile(partial, "w") as archive:
            for name, data in members.items():
                # a fixed time and fixed attributes: the bytes depend on the contents alone
                member = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
                member.compress_type = zipfile.ZIP_DEFLATED
                member.external_attr = 0o644 << 16
                archive.writestr(member, data)

    def _members(self) -> dict[str, bytes]:
        described, arrays = self._parts()
        return described | {name: _npy(array) for name, array in arrays.items()}

    def _parts(self) -> tuple[dict[str, bytes], dict[str, npt.NDArray[Any]]]:
        """What is written down as text, and the arrays beside it."""
        state = self.model.state()
        measured: list[npt.NDArray[Any]] = []
        described = {
            "certificate.json": _json(self.certificate.to_json()),
            "schema.json": _json(self.schema.to_dict()),
            "model.json": _json({"kind": state.kind, "values": state.values, "arrays": list(state.arrays)}),
            "answers.json": _json([_answer_to_json(answer, measured) for answer in self.answers]),
        }
        arrays = {f"model/{number}.npy": array for number, array in enumerate(state.arrays.values())}
        arrays |= {f"answers/{number}.npy": array for number, array in enumerate(measured)}
        return described, arrays

    @classmethod
    def load(cls, path: str | Path) -> Release:
        """Read a release and check it: the manifest, the certificate and the answers must agree."""
        release, _ = verify(path)
        return release


def verify(path: str | Path) -> tuple[Release, list[str]]:
    """Read a release, recompute its guarantee from its charges, and say what was confirmed."""
    from hedgerow.schema import Schema

    members = _read(Path(path))
    try:
        confirmed, signer = _check_manifest(members)
        stated = json.loads(members["certificate.json"])
        schema = Schema.from_dict(json.loads(members["schema.json"]))
        domain = schema.encoding().domain
        answers = [
            _answer_from_json(answer, lambda number: _array(members[f"answers/{number}.npy"]))
            for answer in json.loads(members["answers.json"])
        ]
        confirmed += check(stated, answers, schema)
        about = json.loads(members["model.json"])
        arrays = {name: _array(members[f"model/{number}.npy"]) for number, name in enumerate(about["arrays"])}
        model = load_model(domain, State(about["kind"], about["values"], arrays))
        release = Release(schema, model, Certificate.from_json(stated), answers, signer)
        _check_nothing_else(members, release)
    except ReleaseError:
        raise
    except Exception as problem:  # a damaged or hostile file may break anything below; it is the file's fault
        raise ReleaseError(f'"{path}" is not a release that can be read ({type(problem).__name__}).') from None
    return release, confirmed


def _check_nothing_else(members: Mapping[str, bytes], release: Release) -> None:
    """A release holds what it would hold if it were written again: nothing that no charge or model accounts for."""
    described, arrays = release._parts()
    strange = set(members) - {*described, *arrays, "manifest.json", "signature.json"}
    if strange:
        raise ReleaseError(f"the release holds {len(strange)} members that nothing in it refers to.")
    for name, data in described.items():
        if json.loads(data) != json.loads(members[name]):
            raise ReleaseError(f'"{name}" holds entries that a release does not have.')


def _check_no_gaps(path: Path, archive: zipfile.ZipFile) -> None:
    """The members follow each other from the first byte on, and nothing comes after their list."""
    place = 0
    for info in sorted(archive.infolist(), key=lambda info: info.header_offset):
        if info.header_offset != place or info.extra or info.comment:
            raise ReleaseError(f'"{path}" holds bytes beside its members.')
        place += LOCAL_HEADER + len(info.filename.encode()) + info.compress_size
    listed = sum(LISTED_HEADER + len(info.filename.encode()) for info in archive.infolist())
    if path.stat().st_size != place + listed + END_OF_LIST:
        raise ReleaseError(f'"{path}" holds bytes beside its members.')


def _read(path: Path) -> dict[str, bytes]:
    try:
        with zipfile.ZipFile(path) as archive:
            _check_no_gaps(path, archive)
            infos = archive.infolist()
            names = [info.filename for info in infos]
            sizes = [info.file_size for info in infos]
            swollen = sum(sizes) > 64 * sum(info.compress_size for info in infos) + (64 << 20)
            if len(set(names)) != len(names) or sum(sizes) > LARGEST or swollen:
                raise ReleaseError(f'"{path}" has members that a release does not have.')
            return {name: archive.read(name) for name in names}
    except FileNotFoundError:
        raise ReleaseError(f'there is no release file "{path}".') from None
    except ReleaseError:
        raise
    except Exception:  # a damaged archive may break zipfile and zlib in many ways
        raise ReleaseError(f'"{path}" is not a release: it is damaged, cut short, or of another kind.') from None


def _check_manifest(members: Mapping[str, bytes]) -> tuple[list[str], str | None]:
    manifest = json.loads(members["manifest.json"])
    listed = set(manifest) | {"manifest.json"} | ({"signature.json"} & set(members))
    if listed != set(members):
        raise ReleaseError("the release holds other members than its manifest lists.")
    for name, digest in manifest.items():
        if hashlib.sha256(members[name]).hexdigest() != digest:
            raise ReleaseError(f'"{name}" was changed after the release was made: its hash differs.')
    confirmed = [f"{len(manifest)} members match the manifest"]
    if "signature.json" not in members:
        return confirmed, None
    signer = _check_signature(members["manifest.json"], json.loads(members["signature.json"]))
    return [*confirmed, f"signed by the Ed25519 key {signer}"], signer


def _sign(manifest: bytes, key_file: Path) -> dict[str, str]:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    try:
        key = serialization.load_pem_private_key(key_file.read_bytes(), password=None)
    except (OSError, ValueError, TypeError):
        raise OptionError(f'"{key_file}" is not an unencrypted private key in PEM format.') from None
    if not isinstance(key, Ed25519PrivateKey):
        raise OptionError(f'"{key_file}" is not an Ed25519 key. Hint: openssl genpkey -algorithm ed25519 -out key.pem')
    return {"public_key": key.public_key().public_bytes_raw().hex(), "signature": key.sign(manifest).hex()}


def check_key(key_file: Path) -> None:
    """Refuse a key that cannot sign, before anything is spent."""
    _sign(b"", key_file)


def _check_signature(manifest: bytes, signature: Mapping[str, str]) -> str:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    public = Ed25519PublicKey.from_public_bytes(bytes.fromhex(signature["public_key"]))
    try:
        public.verify(bytes.fromhex(signature["signature"]), manifest)
    except InvalidSignature:
        raise ReleaseError("the signature does not fit the release.") from None
    return signature["public_key"]


# ---------------------------------------------------------------- plain values


def _json(data: Any) -> bytes:
    return json.dumps(data, ensure_ascii=False, indent=1, allow_nan=False).encode()


def _npy(array: npt.NDArray[Any]) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.ascontiguousarray(array), allow_pickle=False)
    return buffer.getvalue()


def _array(data: bytes) -> npt.NDArray[Any]:
    array: npt.NDArray[Any] = np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)
    return array


def _answer_to_json(answer: Answer, arrays: list[npt.NDArray[Any]]) -> dict[str, Any]:
    return {
        "measurements": [_measurement_to_json(measurement, arrays) for measurement in answer.measurements],
        "chosen": answer.chosen,
        "scores": list(answer.scores),
    }


def _answer_from_json(data: Mapping[str, Any], array: Any) -> Answer:
    measurements = tuple(_measurement_from_json(entry, array) for entry in data["measurements"])
    return Answer(measurements, data["chosen"], tuple(data["scores"]))


def _measurement_to_json(measurement: Measurement, arrays: list[npt.NDArray[Any]]) -> dict[str, Any]:
    def store(array: npt.NDArray[Any] | None) -> int | None:
        if array is None:
            return None
        arrays.append(array)
        return len(arrays) - 1

    query = measurement.query
    about: dict[str, Any] = {
        "noise": [measurement.noise.kind, measurement.noise.scale],
        "values": store(measurement.values),
        "kept": store(measurement.kept),
    }
    if isinstance(query, TreeQuery):
        tree = {"splits_on": list(query.splits_on), "label": query.label, "sizes": query.sizes}
        return about | {"tree": tree | {"split": store(query.split), "child": store(query.child)}}
    marginal = {"sizes": query.sizes, "levels": [store(level) for level in query.levels]}
    return about | {"marginal": marginal | {"blocks": store(query.blocks)}}


def _measurement_from_json(data: Mapping[str, Any], array: Any) -> Measurement:
    """A query speaks of its own attributes' sizes: a domain may have been refined after it was asked."""
    query: Query
    if "tree" in data:
        tree = data["tree"]
        domain = Domain.of(tree["sizes"])
        query = TreeQuery(domain, tuple(tree["splits_on"]), array(tree["split"]), array(tree["child"]), tree["label"])
    else:
        marginal = data["marginal"]
        sizes, levels = marginal["sizes"], marginal["levels"]
        given = {name: array(level) for name, level in zip(sizes, levels, strict=True) if level is not None}
        blocks = None if marginal["blocks"] is None else array(marginal["blocks"])
        query = MarginalQuery(Domain.of(sizes), tuple(sizes), levels=given, blocks=blocks)
    kept = None if data["kept"] is None else array(data["kept"])
    values = array(data["values"])
    if values.shape != ((query.cells,) if kept is None else kept.shape):
        raise ReleaseError("a noisy answer has another number of cells than its query.")
    kind, scale = data["noise"]
    return Measurement(query, values, Noise(kind, scale), kept)

"""Signatures with Ed25519: whose statement a release or a folder is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from hedgerow.errors import OptionError, ReleaseError


def sign(data: bytes, key_file: Path) -> dict[str, str]:
    """The public key and the signature of `data`, in hex, by a private key in a PEM file."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    try:
        key = serialization.load_pem_private_key(key_file.read_bytes(), password=None)
    except (OSError, ValueError, TypeError, UnsupportedAlgorithm):
        raise OptionError("bad-key", f'"{key_file}" is not an unencrypted private key in PEM format.') from None
    if not isinstance(key, Ed25519PrivateKey):
        raise OptionError(
            "bad-key", f'"{key_file}" is not an Ed25519 key. Hint: openssl genpkey -algorithm ed25519 -out key.pem'
        )
    return {"public_key": key.public_key().public_bytes_raw().hex(), "signature": key.sign(data).hex()}


def check_key(key_file: Path) -> None:
    """Refuse a key that cannot sign, before anything is spent."""
    sign(b"", key_file)


def check_signature(data: bytes, signature: Mapping[str, str]) -> str:
    """The public key, in hex, whose signature of `data` this is; ReleaseError where it does not fit."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    if any(bytes.fromhex(text).hex() != text for text in signature.values()):
        raise ReleaseError("signature-written", "the signature is not written as Hedgerow writes signatures.")
    public = Ed25519PublicKey.from_public_bytes(bytes.fromhex(signature["public_key"]))
    try:
        public.verify(bytes.fromhex(signature["signature"]), data)
    except InvalidSignature:
        raise ReleaseError("signature-wrong", "the signature does not fit the release.") from None
    return signature["public_key"]


def as_pem(public_key: str) -> bytes:
    """A public key, given in hex, as OpenSSL reads it."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(public_key))
    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def from_pem(data: bytes) -> str:
    """The same in hex; ReleaseError where it is no such key."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        key = load_pem_public_key(data)
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PublicKey):
        raise ReleaseError("signature-written", "the public key beside the signature is no Ed25519 key in PEM format.")
    return key.public_bytes_raw().hex()

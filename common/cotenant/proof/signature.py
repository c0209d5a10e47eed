"""Signs and verifies an archive: an Ed25519 signature of a statement of its SHA-256, in a file beside it.

The statement is in-toto's (Statement v1), the envelope DSSE v1, so that other tools read them.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import json
from pathlib import Path
from typing import TYPE_CHECKING

from cotenant.errors import CotenantError
from cotenant.files import content_of
from cotenant.results.store import write_named

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

SUFFIX = ".sig"
PAYLOAD = "application/vnd.in-toto+json"


def check_key(key: Path) -> None:
    """Raise CotenantError where `sign` would, for a wrong key or a missing package."""
    _private(key)


def sign(archive: Path, key: Path) -> Path:
    """Write the signature of an archive beside it. Raises CotenantError for a wrong key, or a missing package."""
    private = _private(key)
    subject = {"name": archive.name, "digest": {"sha256": _digest(archive)}}
    statement = {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [subject],
        "predicateType": "https://cotenant.dev/archive/v1",
        "predicate": {},
    }
    payload = json.dumps(statement, sort_keys=True).encode()
    signature = private.sign(_encoded(payload))
    envelope = {
        "payloadType": PAYLOAD,
        "payload": base64.b64encode(payload).decode(),
        "signatures": [{"sig": base64.b64encode(signature).decode()}],
    }
    target = archive.with_name(archive.name + SUFFIX)
    write_named(target, json.dumps(envelope, indent=1).encode() + b"\n", "-o names another file.")
    return target


def wrong_signature(archive: Path, key: Path) -> str:
    """Return why the signature beside an archive is not that of this key for this archive; "" where it is.

    Raises CotenantError for a key that is none, or a missing package.
    """
    public = _public(key)
    from cryptography.exceptions import InvalidSignature

    try:
        envelope = json.loads(content_of(archive.with_name(archive.name + SUFFIX), follow=True))
        payload = base64.b64decode(envelope["payload"], validate=True)
        signatures = [base64.b64decode(entry["sig"], validate=True) for entry in envelope["signatures"]]
        digests = {subject["digest"]["sha256"] for subject in json.loads(payload)["subject"]}
    except FileNotFoundError:
        return "There is no signature beside it."
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        return f"The signature beside it cannot be read: {error}."
    for signature in signatures:
        try:
            public.verify(signature, _encoded(payload))
            break
        except InvalidSignature:
            continue
    else:
        return "Its signature is not of this key."
    return "" if _digest(archive) in digests else "Its signature is of another archive."


def _check_package() -> None:
    if importlib.util.find_spec("cryptography") is None:
        raise CotenantError("Signatures need the package 'cryptography'.", "pip install 'cotenant[proof]'")


def _encoded(payload: bytes) -> bytes:
    """Return the signed bytes: DSSE's pre-authentication encoding of payload type and payload."""
    parts = (b"DSSEv1", *(b"%d %s" % (len(part), part) for part in (PAYLOAD.encode(), payload)))
    return b" ".join(parts)


def _digest(path: Path) -> str:
    return hashlib.sha256(content_of(path, follow=True)).hexdigest()


def _private(path: Path) -> Ed25519PrivateKey:
    _check_package()
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(content_of(path, follow=True), password=None)
    except (OSError, ValueError, TypeError) as error:
        raise CotenantError(f"{path} is no private key without a password: {error}.", _MAKE) from error
    if not isinstance(key, Ed25519PrivateKey):
        raise CotenantError(f"{path} is no Ed25519 key.", _MAKE)
    return key


def _public(path: Path) -> Ed25519PublicKey:
    _check_package()
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        key = load_pem_public_key(content_of(path, follow=True))
    except (OSError, ValueError) as error:
        raise CotenantError(f"{path} is no public key: {error}.", _MAKE) from error
    if not isinstance(key, Ed25519PublicKey):
        raise CotenantError(f"{path} is no Ed25519 key.", _MAKE)
    return key


_MAKE = (
    "`openssl genpkey -algorithm ed25519 -out key.pem` makes one, `openssl pkey -in key.pem -pubout` its public half."
)

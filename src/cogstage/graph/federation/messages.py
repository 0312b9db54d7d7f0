"""Signed messages of a federated round: JSON files, each signed by the identity key of its sender."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cogstage.artefact import to_json, write_text
from cogstage.errors import CogstageError, UsageError

try:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
except ImportError as error:  # pragma: no cover
    raise UsageError("federated sums need the library cryptography: pip install 'cogstage[federate]'") from error

SECRET = 0o600
MOST_BYTES = 1 << 28  # of a message that is read


@dataclass(frozen=True)
class Identity:
    """The long-lived signing key of a site or coordinator, and the file that holds it."""

    path: Path
    key: Ed25519PrivateKey

    @property
    def public(self) -> str:
        """The public key, in hexadecimal: what others know this identity by."""
        return self.key.public_key().public_bytes_raw().hex()

    @classmethod
    def create(cls, path: Path) -> Identity:
        """Create a key and write it to a new file that only its owner can read."""
        if path.exists():
            raise UsageError(f"{path} exists; an identity is not replaced")
        identity = cls(path, Ed25519PrivateKey.generate())
        write_text(path, to_json({"kind": "identity", "key": identity.key.private_bytes_raw().hex()}), SECRET)
        return identity

    @classmethod
    def read(cls, path: Path) -> Identity:
        """Read a key file."""
        try:
            return cls(path, Ed25519PrivateKey.from_private_bytes(bytes.fromhex(read_json(path)["key"])))
        except (KeyError, TypeError, ValueError):
            raise UsageError(f"{path} is not an identity made by `cogstage federate identity`") from None


def read_json(path: Path) -> Any:
    """The content of a JSON file."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise ValueError("too large")
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError(f"no such file: {path}") from None
    except (ValueError, RecursionError) as error:
        raise CogstageError(f"{path} is not valid JSON ({error})") from None


def canonical(value: Any) -> bytes:
    """The bytes that are signed: JSON with sorted keys and no spaces."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def write_message(
    path: Path, identity: Identity, round_id: str, step: str, sender: str, body: Mapping[str, Any]
) -> None:
    """Write a signed message. Round, step and sender are signed too, so that it cannot be used anywhere else."""
    message = {"round": round_id, "step": step, "from": sender, "body": dict(body)}
    write_text(path, to_json({**message, "signature": identity.key.sign(canonical(message)).hex()}))


def read_message(path: Path, public: str, round_id: str | None, step: str, sender: str) -> dict[str, Any]:
    """The body of a message; raise unless the owner of ``public`` signed it for this round, step and sender."""
    message = read_json(path)
    try:
        signature = bytes.fromhex(message.pop("signature"))
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(public)).verify(signature, canonical(message))
        body = message["body"]
        fits = (message["step"], message["from"]) == (step, sender) and round_id in (None, message["round"])
    except (InvalidSignature, KeyError, TypeError, ValueError, AttributeError):
        raise CogstageError(
            f"{path} was not signed by {sender}; do not use it, and ask {sender} for the file"
        ) from None
    if not fits or not isinstance(body, dict):
        raise CogstageError(f"{path} belongs to another round, step or site; ask {sender} for the right file")
    return body

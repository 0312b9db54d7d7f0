"""Secrets: personal links and session cookies (random, stored as SHA-256), passwords (scrypt), and one-time codes.

A link or cookie reads ``<id>.<secret>``: the id finds the row, the secret's hash is compared in constant time.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from dataclasses import dataclass
from urllib.parse import quote, urlencode

from cogstage.errors import UsageError

SECRET_BYTES = 24  # 192 bits
SHORTEST_PASSWORD = 10
TIME_STEP, CODE_DIGITS = 30, 6  # seconds and digits of a one-time code, which all programs that show codes support
_SCRYPT_N, _SCRYPT_R, _SCRYPT_P = 2**15, 8, 1
_SCRYPT_MEMORY = 64 * 1024 * 1024


@dataclass(frozen=True)
class Ticket:
    """A new secret: ``text`` is handed out once, ``id`` and ``hash`` are stored."""

    id: str
    text: str
    hash: str


def new_ticket(identifier: str | None = None) -> Ticket:
    """A fresh secret, with a fresh id unless one is given."""
    identifier = identifier or secrets.token_hex(8)
    secret = secrets.token_urlsafe(SECRET_BYTES)
    return Ticket(identifier, f"{identifier}.{secret}", hash_secret(secret))


def split_ticket(text: str) -> tuple[str, str]:
    """Split a ticket into id and secret; an invalid ticket gives parts that match nothing."""
    identifier, _, secret = text[:200].partition(".")
    return identifier.encode("utf-8", "replace").decode().replace("\0", ""), secret


def hash_secret(secret: str) -> str:
    """Hash a secret. SHA-256 is enough, because the secret is random and long."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


def secret_matches(secret: str, stored_hash: str | None) -> bool:
    """Compare in constant time; False, after the same time, if nothing is stored."""
    same = hmac.compare_digest(hash_secret(secret), stored_hash or hash_secret("nobody"))
    return same and stored_hash is not None


def form_token(ticket_text: str) -> str:
    """The CSRF token of a session: follows from its secret, says nothing about it."""
    return hmac.new(ticket_text.encode("utf-8", "replace"), b"form", hashlib.sha256).hexdigest()


def new_password() -> str:
    """A random password that can be read out and typed."""
    alphabet = "abcdefghjkmnpqrstuvwxyz23456789"
    return "-".join("".join(secrets.choice(alphabet) for _ in range(5)) for _ in range(4))


def hash_password(password: str) -> str:
    """scrypt with a random salt; the cost occurs in the result so that it can be raised later."""
    if len(password) < SHORTEST_PASSWORD:
        raise UsageError(f"the administrator's password needs at least {SHORTEST_PASSWORD} characters")
    salt = secrets.token_bytes(16)
    digest = _scrypt(password, salt, _SCRYPT_N, _SCRYPT_R, _SCRYPT_P)
    return f"scrypt:{_SCRYPT_N}:{_SCRYPT_R}:{_SCRYPT_P}:{_text(salt)}:{_text(digest)}"


def password_matches(password: str, stored: str | None) -> bool:
    """Constant-time check; with no password set it takes as long and says no."""
    if stored is None:
        _scrypt(password, b"0" * 16, _SCRYPT_N, _SCRYPT_R, _SCRYPT_P)
        return False
    _, n, r, p, salt, digest = stored.split(":")
    computed = _scrypt(password, base64.b64decode(salt), int(n), int(r), int(p))
    return hmac.compare_digest(computed, base64.b64decode(digest))


def new_time_secret() -> str:
    """A secret from which one-time codes are computed, in base32."""
    return base64.b32encode(secrets.token_bytes(20)).decode()


def time_code(secret: str, step: int) -> bytes:
    """The one-time code of a time step (TOTP, RFC 6238)."""
    digest = hmac.new(base64.b32decode(secret), step.to_bytes(8, "big"), "sha1").digest()
    start = digest[-1] & 15
    number = int.from_bytes(digest[start : start + 4], "big") & 0x7FFFFFFF
    return str(number % 10**CODE_DIGITS).zfill(CODE_DIGITS).encode()


def time_address(secret: str, title: str, name: str) -> str:
    """What a program that shows codes reads, usually as a QR code."""
    fields = urlencode({"secret": secret, "issuer": title, "period": TIME_STEP, "digits": CODE_DIGITS}, quote_via=quote)
    return f"otpauth://totp/{quote(title, safe='')}:{quote(name, safe='')}?{fields}"


def _scrypt(password: str, salt: bytes, n: int, r: int, p: int) -> bytes:
    return hashlib.scrypt(password.encode("utf-8", "replace"), salt=salt, n=n, r=r, p=p, maxmem=_SCRYPT_MEMORY)


def _text(raw: bytes) -> str:
    return base64.b64encode(raw).decode()

"""The cryptography of a federated sum: key agreement, masks, secret sharing and sealed boxes.

All of it stands on ``cryptography`` (X25519, HKDF-SHA256, ChaCha20, ChaCha20-Poly1305) except for secret sharing
(Shamir, 1979), a polynomial over the integers modulo the prime 2^521 - 1.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping, Sequence

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from cogstage.errors import CogstageError

PRIME = 2**521 - 1  # a Mersenne prime above every secret of 32 bytes
KEY = 32  # bytes of keys and seeds
NONCE = 12
WORD = 8  # bytes of a masked number


def new_key() -> bytes:
    """A private X25519 key."""
    return X25519PrivateKey.generate().private_bytes_raw()


def public_key(private: bytes) -> bytes:
    """The public key of a private one."""
    return X25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw()


def agreed_key(private: bytes, public: bytes, *purpose: str) -> bytes:
    """The key that two owners of private keys agree on for a purpose, which names the round, the use and both."""
    shared = X25519PrivateKey.from_private_bytes(private).exchange(X25519PublicKey.from_public_bytes(public))
    return HKDF(SHA256(), KEY, None, "\x1f".join(("cogstage federated sum", *purpose)).encode()).derive(shared)


def stream(seed: bytes, n: int) -> np.ndarray:
    """``n`` pseudorandom numbers below 2^64 from a seed that is used once, uint64 (n,)."""
    encryptor = Cipher(ChaCha20(seed, bytes(16)), None).encryptor()
    return np.frombuffer(encryptor.update(bytes(WORD * n)), "<u8").astype(np.uint64, copy=True)


def pair_mask(own: str, other: str, seed: bytes, n: int) -> np.ndarray:
    """The mask that two sites share, added by the first of their names and subtracted by the second."""
    mask: np.ndarray = stream(seed, n)
    return mask if own < other else ~mask + np.uint64(1)  # modulo 2^64


def split(secret: bytes, n: int, threshold: int) -> list[int]:
    """``n`` shares of a secret of 32 bytes; ``threshold`` of them give it, fewer tell nothing of it."""
    coefficients = [int.from_bytes(secret, "big"), *(secrets.randbelow(PRIME) for _ in range(threshold - 1))]
    shares = []
    for x in range(1, n + 1):
        value = 0
        for coefficient in reversed(coefficients):
            value = (value * x + coefficient) % PRIME
        shares.append(value)
    return shares


def combine(shares: Mapping[int, int]) -> bytes:
    """The secret of shares by their numbers 1 ... n; wrong or too few shares give another one, or none."""
    total = 0
    for x, y in shares.items():
        above, below = 1, 1
        for other in shares:
            if other != x:
                above, below = above * other % PRIME, below * (other - x) % PRIME
        total = (total + y * above * pow(below, -1, PRIME)) % PRIME
    if total >= 1 << 8 * KEY:
        raise CogstageError("the shares of a site do not fit together; a reveal file is wrong")
    return total.to_bytes(KEY, "big")


def seal(key: bytes, data: bytes) -> str:
    """Encrypt and authenticate, in hexadecimal."""
    nonce = os.urandom(NONCE)
    return (nonce + ChaCha20Poly1305(key).encrypt(nonce, data, None)).hex()


def unseal(key: bytes, sealed: str, where: str) -> bytes:
    """Decrypt; raise if it was not sealed with this key."""
    try:
        data = bytes.fromhex(sealed)
        return ChaCha20Poly1305(key).decrypt(data[:NONCE], data[NONCE:], None)
    except (InvalidTag, ValueError, TypeError):
        raise CogstageError(f"{where} cannot be decrypted; it was made for another site, or is damaged") from None


def mask_vector(values: np.ndarray, own: str, self_seed: bytes, pair_seeds: Mapping[str, bytes]) -> np.ndarray:
    """Values (n,) under the site's own mask and the masks that it shares with every other site, modulo 2^64."""
    masked: np.ndarray = values.astype(np.uint64) + stream(self_seed, len(values))
    for other, seed in pair_seeds.items():
        masked += pair_mask(own, other, seed, len(values))
    return masked


def unmask_sum(
    masked: Sequence[np.ndarray], self_seeds: Sequence[bytes], left: Mapping[tuple[str, str], bytes]
) -> np.ndarray:
    """The sum of the values of the present sites.

    ``left`` are the seeds of the masks that stay in the sum, by the names (present site, absent site).
    """
    total: np.ndarray = np.zeros(len(masked[0]), np.uint64)
    for vector in masked:
        total += vector
    for seed in self_seeds:
        total -= stream(seed, len(total))
    for (present, absent), seed in left.items():
        total -= pair_mask(present, absent, seed, len(total))
    return total

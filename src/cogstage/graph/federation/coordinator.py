"""What the coordinator does in a federated round: close it, and add up."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from cogstage.errors import CogstageError, UsageError
from cogstage.graph.cooccurrence import Graph
from cogstage.graph.federation import masking
from cogstage.graph.federation.messages import Identity, read_json, write_message
from cogstage.graph.federation.rounds import COORDINATOR, PRESENT, Round, read_round, state_file, to_graph


def close_round(folder: Path, identity: Identity) -> list[str]:
    """Decide which sites are in the sum: those whose masked numbers are there. This is decided once."""
    about = _own_round(folder, identity)
    if (decided := about.present()) is not None:
        return decided
    present = sorted(site for site in about.messages("masked") if _numbers(about, site) is not None)
    if len(present) < about.threshold:
        raise CogstageError(f"{len(present)} sites sent masked numbers, {about.threshold} are needed")
    write_message(folder / PRESENT, identity, about.id, "present", COORDINATOR, {"sites": present})
    return present


def sum_round(folder: Path, identity: Identity) -> Graph:
    """The graph whose counts are the sums over the present sites; absent sites leave nothing in it."""
    about = _own_round(folder, identity)
    present = about.present()
    if present is None:
        raise UsageError(f"{folder} is not closed yet: `cogstage federate close`")
    keys, revealed = about.messages("keys"), _revealed(about, identity, present)
    if len(revealed) < about.threshold:
        raise CogstageError(f"{len(revealed)} sites revealed shares, {about.threshold} are needed")
    secrets = {
        site: masking.combine({about.number(by): int(shares[site], 16) for by, shares in revealed.items()})
        for site in about.sites
    }
    absent = sorted(set(about.sites) - set(present))
    for site, secret in secrets.items():
        _check_secret(site, secret, keys[site], site in present)
    left = {
        (site, gone): masking.agreed_key(
            secrets[gone], bytes.fromhex(keys[site]["mask_key"]), about.id, "mask", *sorted((site, gone))
        )
        for site in present
        for gone in absent
    }
    size = about.size(bool(keys[present[0]]["order"]))
    masked = []
    for site in present:
        numbers = _numbers(about, site)
        if numbers is None or len(numbers) != size:
            raise CogstageError(f"{about.numbers_file(site)} has changed since the round was closed, or is cut short")
        masked.append(numbers)
    vector = masking.unmask_sum(masked, [secrets[site] for site in present], left)
    made_with = {
        **keys[present[0]]["counted"],
        "how": "federate",
        "federated": {"sites": len(present), "absent": len(absent), "round": about.id},
    }
    return to_graph(vector, about, made_with)


def _own_round(folder: Path, identity: Identity) -> Round:
    about = read_round(folder)
    if about.coordinator != identity.public:
        raise UsageError(f"{identity.path} is not the identity of the coordinator of {folder}")
    return about


def _numbers(about: Round, site: str) -> np.ndarray | None:
    """The masked numbers of a site, checked against its signed hash; None if they are not there."""
    message, path = about.message("masked", site), about.numbers_file(site)
    if message is None or not path.exists():
        return None
    data = path.read_bytes()
    if hashlib.sha256(data).hexdigest() != message.get("sha256"):
        raise CogstageError(f"{path} is not what {site} signed; ask {site} for the file")
    return np.frombuffer(data, "<u8")


def _revealed(about: Round, identity: Identity, present: list[str]) -> dict[str, Mapping[str, str]]:
    """The shares that present sites revealed."""
    own_key = bytes.fromhex(read_json(state_file(identity, about.id))["seal_key"])
    revealed: dict[str, Mapping[str, str]] = {}
    for site, body in about.messages("reveal").items():
        if site in present:
            public = bytes.fromhex(about.messages("keys")[site]["seal_key"])
            key = masking.agreed_key(own_key, public, about.id, "reveal", site)
            revealed[site] = json.loads(masking.unseal(key, str(body.get("box")), str(about.file("reveal", site))))
    return revealed


def _check_secret(site: str, secret: bytes, keys: Mapping[str, Any], is_present: bool) -> None:
    """Raise unless a recovered secret is the one that its site announced."""
    if is_present:
        fits = hashlib.sha256(secret).hexdigest() == keys["self_seed"]
    else:
        fits = masking.public_key(secret).hex() == keys["mask_key"]
    if not fits:
        raise CogstageError(f"the revealed shares do not give the secret of {site}; start a new round")

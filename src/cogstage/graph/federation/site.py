"""What a site does in a federated round: one step whenever the files of the step before are there."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cogstage.artefact import new_file, to_json, write_text
from cogstage.errors import CogstageError, UsageError
from cogstage.graph.cooccurrence import Graph
from cogstage.graph.federation import masking
from cogstage.graph.federation.messages import SECRET, Identity, read_json, write_message
from cogstage.graph.federation.rounds import Round, counted_as, read_round, state_file, to_vector

SHARED = ("mask_key", "self_seed")  # secrets of which every site gets a share


def take_step(folder: Path, identity: Identity, graph: Graph) -> str:
    """Take the next step of a round, and say what was done or what is missing.

    The steps are ``keys``, ``shares``, ``masked`` and ``reveal``. Each writes one signed file. The secrets of the round
    are kept beside the identity. A site masks one vector per round, and reveals once: to do either again for another
    vector, or for other present sites, would reveal counts.
    """
    about = read_round(folder)
    own = next((name for name, key in about.sites.items() if key == identity.public), None)
    if own is None:
        raise UsageError(f"{identity.path} is not the identity of a site of {folder}")
    state_path = state_file(identity, about.id)
    if not state_path.exists():
        state = {name: masking.new_key().hex() for name in (*SHARED, "seal_key")}
        write_text(state_path, to_json(state), SECRET)
    state = read_json(state_path)
    if not about.file("keys", own).exists():
        return _send_keys(about, own, identity, state, graph)
    keys = about.messages("keys")
    if missing := _missing(about, keys):
        return f"waiting for keys of {missing}"
    _check_counted(keys, own, graph)
    if not about.file("shares", own).exists():
        return _send_shares(about, own, identity, state, keys)
    shares = about.messages("shares")
    if missing := _missing(about, shares):
        return f"waiting for shares of {missing}"
    if not about.file("masked", own).exists():
        return _send_masked(about, own, identity, state, keys, graph)
    present = about.present()
    if present is None:
        return "waiting for the coordinator, who closes the round"
    if about.file("reveal", own).exists():
        return "done: the coordinator can add up"
    return _reveal(about, own, identity, state, keys, shares, present)


def _missing(about: Round, messages: Mapping[str, Any]) -> str:
    return ", ".join(sorted(set(about.sites) - set(messages)))


def _send_keys(about: Round, own: str, identity: Identity, state: Mapping[str, str], graph: Graph) -> str:
    body = {
        "mask_key": masking.public_key(bytes.fromhex(state["mask_key"])).hex(),
        "seal_key": masking.public_key(bytes.fromhex(state["seal_key"])).hex(),
        "self_seed": hashlib.sha256(bytes.fromhex(state["self_seed"])).hexdigest(),
        "counted": counted_as(graph),
        "order": graph.in_order is not None,
    }
    write_message(about.file("keys", own), identity, about.id, "keys", own, body)
    return f"sent keys; the fingerprint of the round is {about.fingerprint}: compare it with the other sites"


def _check_counted(keys: Mapping[str, Mapping[str, Any]], own: str, graph: Graph) -> None:
    """Raise unless all sites count alike."""
    mine = {**counted_as(graph), "order in time": graph.in_order is not None}
    for site, body in keys.items():
        theirs = {**body["counted"], "order in time": body["order"]}
        for option, value in mine.items():
            if theirs.get(option) != value:
                raise UsageError(
                    f"{own} counted with {option} {value}, {site} with {theirs.get(option)}; "
                    "agree on the options and start a new round"
                )


def _box_key(about: Round, state: Mapping[str, str], public: str, sender: str, receiver: str) -> bytes:
    """The key of the sealed box from one site to another; ``public`` is the key of the site that is not this one."""
    return masking.agreed_key(
        bytes.fromhex(state["seal_key"]), bytes.fromhex(public), about.id, "box", sender, receiver
    )


def _send_shares(
    about: Round, own: str, identity: Identity, state: dict[str, Any], keys: Mapping[str, Mapping[str, Any]]
) -> str:
    """Give every site a sealed share of this site's secrets; that of its own stays here."""
    n = len(about.sites)
    split = {name: masking.split(bytes.fromhex(state[name]), n, about.threshold) for name in SHARED}
    boxes = {}
    for site in sorted(about.sites):
        share = {name: f"{split[name][about.number(site) - 1]:x}" for name in SHARED}
        if site == own:
            state["own_share"] = share
        else:
            key = _box_key(about, state, keys[site]["seal_key"], own, site)
            boxes[site] = masking.seal(key, json.dumps(share).encode())
    write_text(state_file(identity, about.id), to_json(state), SECRET)
    write_message(about.file("shares", own), identity, about.id, "shares", own, {"boxes": boxes})
    return "sent shares"


def _send_masked(
    about: Round,
    own: str,
    identity: Identity,
    state: dict[str, Any],
    keys: Mapping[str, Mapping[str, Any]],
    graph: Graph,
) -> str:
    vector, unknown = to_vector(graph, about)
    mask_key = bytes.fromhex(state["mask_key"])
    seeds = {
        site: masking.agreed_key(mask_key, bytes.fromhex(body["mask_key"]), about.id, "mask", *sorted((own, site)))
        for site, body in keys.items()
        if site != own
    }
    data = masking.mask_vector(vector, own, bytes.fromhex(state["self_seed"]), seeds).astype("<u8").tobytes()
    digest = hashlib.sha256(data).hexdigest()
    if state.setdefault("masked", digest) != digest:
        raise CogstageError("other counts were masked in this round before; both files together would reveal the "
                            "difference. Give the same graph, or start a new round")  # fmt: skip
    write_text(state_file(identity, about.id), to_json(state), SECRET)
    with new_file(about.numbers_file(own)) as temporary:
        temporary.write_bytes(data)
    write_message(about.file("masked", own), identity, about.id, "masked", own, {"sha256": digest})
    left_out = f"; {unknown:,} of its terms are not in the vocabulary of the round and are left out" if unknown else ""
    return f"sent {len(vector):,} masked numbers{left_out}"


def _reveal(
    about: Round,
    own: str,
    identity: Identity,
    state: dict[str, Any],
    keys: Mapping[str, Mapping[str, Any]],
    shares: Mapping[str, Mapping[str, Any]],
    present: list[str],
) -> str:
    """Reveal, of every site, a share of one of its two secrets: never of both, for both reveal its counts."""
    if own not in present:
        return f"left out: the coordinator closed the round without the numbers of {own}"
    if state.setdefault("present", present) != present:
        raise CogstageError("shares were revealed for other present sites before; to reveal more would reveal counts")
    revealed = {}
    for site in sorted(about.sites):
        share = state["own_share"]
        if site != own:
            key = _box_key(about, state, keys[site]["seal_key"], site, own)
            share = json.loads(
                masking.unseal(key, str(shares[site]["boxes"].get(own)), str(about.file("shares", site)))
            )
        revealed[site] = share["self_seed" if site in present else "mask_key"]
    write_text(state_file(identity, about.id), to_json(state), SECRET)
    key = masking.agreed_key(bytes.fromhex(state["seal_key"]), about.seal_key, about.id, "reveal", own)
    body = {"box": masking.seal(key, json.dumps(revealed).encode())}
    write_message(about.file("reveal", own), identity, about.id, "reveal", own, body)
    return "revealed the shares that the sum needs; done"

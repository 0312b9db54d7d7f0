"""Federated sums of a simulated hospital: equal to a merge, with absent sites too; masked files show nothing."""

from __future__ import annotations

import json
import re
import shutil
from contextlib import suppress
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from benchmarks.hospital import Hospital, Plan, write_hospital
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2, kstest
from typer.testing import CliRunner

from cogstage.cli.main import app
from cogstage.errors import CogstageError, UsageError
from cogstage.graph.build import build_graph
from cogstage.graph.cooccurrence import Graph
from cogstage.graph.federation import masking
from cogstage.graph.federation.coordinator import close_round, sum_round
from cogstage.graph.federation.messages import Identity
from cogstage.graph.federation.rounds import (
    AgreedTerm,
    concepts_of,
    read_round,
    start_round,
    terms_of,
    to_graph,
    to_vector,
)
from cogstage.graph.federation.rounds import Round as Description
from cogstage.graph.federation.site import take_step
from cogstage.graph.merge import merge_folders
from cogstage.graph.options import BuildOptions
from cogstage.graph.vocabulary import Vocabulary

NAMES = ("north", "south", "east", "west", "middle")
PLAN = Plan(terms=60, groups=3, patients=60, notes=2, table=0, least=1)
SURE = 1e-7  # p value below which numbers are called not uniform


@pytest.fixture(scope="module")
def hospital(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five graphs, each of twelve patients of a hospital, and the lexicon."""
    folder = tmp_path_factory.mktemp("hospital")
    write_hospital(PLAN, folder)
    patients = Hospital(PLAN)
    for number, name in enumerate(NAMES):
        with (folder / f"{name}.jsonl").open("w", encoding="utf-8") as handle:
            handle.writelines(json.dumps(note) + "\n" for note in patients.notes(12 * number, 12 * number + 12))
        options = BuildOptions(
            unit="patient-window", window=30, per="patient", pairs_per_patient=60, order=True, corpus=None
        )
        build_graph(folder / f"{name}.jsonl", folder / name, folder / "lexicon.tsv", options)
    return folder


class Round:
    """A round with its identities, in one shared folder."""

    def __init__(self, tmp_path: Path, hospital: Path, threshold: int | None = None) -> None:
        self.folder, self.hospital = tmp_path / "round", hospital
        self.identity = {name: Identity.create(tmp_path / f"{name}.key") for name in (*NAMES, "coordinator")}
        sites = {name: self.identity[name].public for name in NAMES}
        terms = concepts_of(hospital / "lexicon.tsv")
        start_round(self.folder, self.identity["coordinator"], sites, terms, threshold)

    def step(self, *names: str) -> list[str]:
        return [take_step(self.folder, self.identity[name], Graph.load(self.hospital / name)) for name in names]

    def masked(self, *absent: str) -> Round:
        """Keys and shares of all, numbers of those who stay."""
        self.step(*NAMES)
        self.step(*NAMES)
        self.step(*(name for name in NAMES if name not in absent))
        return self

    def close(self) -> list[str]:
        return close_round(self.folder, self.identity["coordinator"])

    def sum(self) -> Graph:
        return sum_round(self.folder, self.identity["coordinator"])


@pytest.mark.parametrize("absent", [(), ("east",), ("north",), ("middle",)])
def test_the_sum_equals_a_merge_byte_for_byte(tmp_path: Path, hospital: Path, absent: tuple[str, ...]) -> None:
    present = [name for name in NAMES if name not in absent]
    started = Round(tmp_path, hospital).masked(*absent)
    assert started.close() == sorted(present)
    started.step(*present)
    started.sum().save(tmp_path / "sum")
    merged = merge_folders([hospital / name for name in present], tmp_path / "merged")
    assert merged.n_edges > 500
    for file in ("terms.parquet", "edges.parquet", "order.parquet", "synonyms.parquet"):
        assert (tmp_path / "sum" / file).read_bytes() == (tmp_path / "merged" / file).read_bytes()
    made = Graph.load(tmp_path / "sum").made_with
    for total in ("documents", "units", "groups"):
        assert made[total] == merged.made_with[total]
    assert made["federated"] == {"sites": len(present), "absent": len(absent), "round": read_round(started.folder).id}


def test_two_absent_sites_need_a_lower_threshold(tmp_path: Path, hospital: Path) -> None:
    absent = ("south", "west")
    with pytest.raises(CogstageError, match="3 sites sent masked numbers, 4 are needed"):
        Round(tmp_path, hospital).masked(*absent).close()
    (tmp_path / "again").mkdir()
    started = Round(tmp_path / "again", hospital, 3).masked(*absent)
    present = started.close()
    started.step(*present[:2])
    with pytest.raises(CogstageError, match="2 sites revealed shares, 3 are needed"):
        started.sum()
    started.step(*present[2:])
    merged = merge_folders([hospital / name for name in NAMES if name not in absent], tmp_path / "merged")
    assert started.sum().hash == merged.hash


def uniformity(words: np.ndarray) -> float:
    """Smallest p value of: all bytes equally frequent, at each of their positions; values uniform; neighbours apart."""
    octets = words.astype("<u8").view(np.uint8).reshape(-1, 8)
    p = []
    for column in octets.T:
        seen = np.bincount(column, minlength=256)
        wanted = len(column) / 256
        p.append(float(chi2.sf(((seen - wanted) ** 2 / wanted).sum(), 255)))
    share = words / 2.0**64
    p.append(float(kstest(share, "uniform").pvalue))
    p.append(float(kstest((share[1:] - share[:-1]) % 1.0, "uniform").pvalue))
    bits = np.unpackbits(octets.ravel()).astype(int)
    runs, ones = int((bits[1:] != bits[:-1]).sum()), int(bits.sum())
    n = len(bits)
    p += [float(chi2.sf((2 * count - size) ** 2 / size, 1)) for count, size in ((ones, n), (runs, n - 1))]
    return min(p)


def test_masked_files_are_uniform_alone_and_in_any_incomplete_sum(tmp_path: Path, hospital: Path) -> None:
    """The tests refuse the counts themselves, and counts under a mask of 16 bits: they have the power to."""
    started = Round(tmp_path, hospital).masked()
    about = read_round(started.folder)
    files = {name: np.frombuffer(about.numbers_file(name).read_bytes(), "<u8") for name in NAMES}
    for size in (1, 2, 4, 5):  # of all five, the masks of pairs are gone; each site's own is not
        for chosen in combinations(NAMES, size):
            total = np.sum([files[name] for name in chosen], axis=0, dtype=np.uint64)
            assert uniformity(total) > SURE, chosen
    plain = to_vector(Graph.load(hospital / "north"), about)[0]
    assert uniformity(plain) < SURE
    short = plain + (masking.stream(bytes(32), len(plain)) & np.uint64(0xFFFF))
    assert uniformity(short) < SURE
    assert uniformity(files["north"] - files["south"]) > SURE


def test_one_secret_of_a_site_is_not_enough(tmp_path: Path, hospital: Path) -> None:
    """A file that comes after the round was closed: the masks of its pairs are known then, its own mask is not."""
    started = Round(tmp_path, hospital).masked("east")
    present = started.close()
    started.step(*present)
    about = read_round(started.folder)
    started.step("east")  # late
    assert started.close() == present
    keys = about.messages("keys")
    east = json.loads((tmp_path / f"east.key.{about.id[:16]}.json").read_text())
    seeds = {
        name: masking.agreed_key(
            bytes.fromhex(east["mask_key"]),
            bytes.fromhex(keys[name]["mask_key"]),
            about.id,
            "mask",
            *sorted((name, "east")),
        )
        for name in present
    }
    late = np.frombuffer(about.numbers_file("east").read_bytes(), "<u8")
    without_pairs = late - sum(masking.pair_mask("east", name, seed, len(late)) for name, seed in seeds.items())
    assert uniformity(without_pairs) > SURE
    own = masking.stream(bytes.fromhex(east["self_seed"]), len(late))  # which nobody else can recover
    assert (without_pairs - own == to_vector(Graph.load(hospital / "east"), about)[0]).all()
    merged = merge_folders([hospital / name for name in NAMES if name != "east"], tmp_path / "merged")
    assert started.sum().hash == merged.hash
    assert started.step("east") == ["left out: the coordinator closed the round without the numbers of east"]


def test_a_site_reveals_for_one_set_of_sites_and_masks_one_vector(tmp_path: Path, hospital: Path) -> None:
    started = Round(tmp_path, hospital).masked("east")
    started.close()
    started.step("north")
    about = read_round(started.folder)
    about.file("reveal", "north").unlink()
    (started.folder / "present.json").unlink()
    started.step("east")  # so that the coordinator could close with all five
    assert len(started.close()) == 5
    with pytest.raises(CogstageError, match="for other present sites before"):
        started.step("north")
    about.file("masked", "south").unlink()
    with pytest.raises(CogstageError, match="other counts were masked in this round before"):
        take_step(started.folder, started.identity["south"], Graph.load(hospital / "north"))


@pytest.mark.parametrize("step", ["keys", "shares", "masked"])
def test_forged_and_exchanged_messages_are_refused(tmp_path: Path, hospital: Path, step: str) -> None:
    started = Round(tmp_path, hospital).masked()
    path = started.folder / f"{step}-south.json"
    message = json.loads(path.read_text())
    sound = path.read_text()
    for change in (
        {"body": {**message["body"], "extra": 1}},
        {"signature": "00" * 64},
        {"round": "0" * 64},
        {"from": "north"},
    ):
        path.write_text(json.dumps({**message, **change}))
        with pytest.raises(CogstageError, match="was not signed by south"):
            read_round(started.folder).messages(step)
    shutil.copyfile(started.folder / f"{step}-north.json", path)
    with pytest.raises(CogstageError, match="was not signed by south"):
        read_round(started.folder).messages(step)
    path.write_text(sound)
    assert set(read_round(started.folder).messages(step)) == set(NAMES)


def test_changed_numbers_and_shares_are_refused(tmp_path: Path, hospital: Path) -> None:
    started = Round(tmp_path, hospital).masked()
    numbers = started.folder / "masked-west.bin"
    sound = numbers.read_bytes()
    numbers.write_bytes(sound[:-8] + bytes(8))
    with pytest.raises(CogstageError, match=r"masked-west\.bin is not what west signed"):
        started.close()
    numbers.write_bytes(sound)
    started.close()
    state = next(tmp_path.glob("west.key.*.json"))
    held = json.loads(state.read_text())
    held["own_share"]["self_seed"] = "5"
    state.write_text(json.dumps(held))
    started.step(*NAMES)
    with pytest.raises(CogstageError, match=r"do not (fit together|give the secret of west)"):
        started.sum()


def test_sites_that_counted_otherwise_are_told(tmp_path: Path, hospital: Path) -> None:
    started = Round(tmp_path, hospital)
    other = BuildOptions(unit="patient-window", window=7, per="patient", pairs_per_patient=60, order=True)
    build_graph(hospital / "north.jsonl", tmp_path / "other", hospital / "lexicon.tsv", other)
    take_step(started.folder, started.identity["north"], Graph.load(tmp_path / "other"))
    assert started.step(*NAMES[1:])[0].startswith("sent keys; the fingerprint of the round is ")
    with pytest.raises(UsageError, match="south counted with window 30d, north with 7d"):
        started.step("south")
    with pytest.raises(UsageError, match="is not the identity of a site"):
        take_step(started.folder, started.identity["coordinator"], Graph.load(hospital / "north"))
    suppressed = BuildOptions(suppress_below=2)
    build_graph(hospital / "north.jsonl", tmp_path / "fewer", hospital / "lexicon.tsv", suppressed)
    (tmp_path / "again").mkdir()
    again = Round(tmp_path / "again", hospital)
    with pytest.raises(UsageError, match="noisy counts or lacks some"):
        take_step(again.folder, again.identity["north"], Graph.load(tmp_path / "fewer"))


@settings(max_examples=40, deadline=None)
@given(st.binary(min_size=32, max_size=32), st.integers(2, 7), st.data())
def test_shares_give_the_secret_from_the_threshold_on(secret: bytes, n: int, data: st.DataObject) -> None:
    threshold = data.draw(st.integers(2, n))
    shares = dict(enumerate(masking.split(secret, n, threshold), 1))
    some = data.draw(st.lists(st.sampled_from(sorted(shares)), min_size=threshold, max_size=n, unique=True))
    assert masking.combine({x: shares[x] for x in some}) == secret
    if threshold > 2:
        fewer = {x: shares[x] for x in some[: threshold - 1]}
        with suppress(CogstageError):  # above 2^256: not a secret at all
            assert masking.combine(fewer) != secret


def test_shares_below_the_threshold_are_uniform() -> None:
    """Of any secret, one share of two looks alike."""
    top = [
        np.array([masking.split(secret, 2, 2)[0] >> 457 for _ in range(4000)], np.uint64)
        for secret in (bytes(32), b"\xff" * 32)
    ]
    for drawn in top:
        assert kstest(drawn / 2.0**64, "uniform").pvalue > SURE


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6), st.integers(1, 2**40)), max_size=15), st.booleans())
def test_vectors_keep_every_count(rows: list[tuple[int, int, int]], order: bool) -> None:
    """There and back, with a vocabulary whose order is another than that of the graph's nodes."""
    pairs = {(min(s, t), max(s, t)): n for s, t, n in rows if s != t}
    source, target = (np.array([pair[end] for pair in sorted(pairs)], np.int32) for end in (0, 1))
    count = np.array([pairs[pair] for pair in sorted(pairs)], np.int64)
    words = tuple("gbfcead")
    vocabulary = Vocabulary(words, words, words, ("",) * 7, np.arange(1, 8))
    cells = np.stack([count % 7, count % 5, count % 3], 1).astype(np.int32) if order else None
    graph = Graph(vocabulary, source, target, count, {"documents": 9}, cells)
    about = Description(
        Path("."), "", {}, "", b"", 2, tuple(AgreedTerm(word, word, word, "") for word in sorted(words))
    )
    back = to_graph(to_vector(graph, about)[0], about, {})
    assert back.vocabulary.term == tuple(sorted(words))
    assert back.made_with["documents"] == 9

    def named(one: Graph) -> dict[frozenset[str], tuple[int, list[int] | None]]:
        term = one.vocabulary.term
        result = {}
        for edge, (s, t, n) in enumerate(zip(one.source, one.target, one.count, strict=True)):
            three = None if one.in_order is None else one.in_order[edge].tolist()
            if three is not None and term[s] > term[t]:
                three = [three[1], three[0], three[2]]
            result[frozenset((term[s], term[t]))] = (int(n), three)
        return result

    assert named(back) == named(graph)


def test_unsound_rounds_are_refused(tmp_path: Path, hospital: Path) -> None:
    identity, terms = Identity.create(tmp_path / "me.key"), terms_of(hospital / "north")
    keys = {f"s{n}": Identity.create(tmp_path / f"{n}.key").public for n in range(4)}
    with pytest.raises(UsageError, match="is not replaced"):
        Identity.create(tmp_path / "me.key")
    assert (tmp_path / "me.key").stat().st_mode & 0o777 == 0o600
    for sites, threshold, message in (
        ({"s0": keys["s0"], "s1": keys["s1"]}, None, "needs 3 or more"),
        ({**keys, "../x": "0" * 64}, None, "plain names"),
        ({**keys, "s4": keys["s0"]}, None, "key of its own"),
        ({**keys, "s4": "abc"}, None, "key of its own"),
        (keys, 2, "more than half"),
        (keys, 5, "more than half"),
    ):
        with pytest.raises(UsageError, match=message):
            start_round(tmp_path / "round", identity, sites, terms, threshold)
    with pytest.raises(UsageError, match="each once"):
        start_round(tmp_path / "round", identity, keys, [*terms, terms[0]])
    start_round(tmp_path / "round", identity, keys, terms)
    with pytest.raises(UsageError, match="start a new round"):
        start_round(tmp_path / "round", identity, keys, terms)
    path = tmp_path / "round" / "round.json"
    path.write_text(path.read_text().replace('"threshold": 3', '"threshold": 1'))
    with pytest.raises(CogstageError, match="was not signed by coordinator"):
        read_round(tmp_path / "round")


def test_the_commands(tmp_path: Path, hospital: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> str:
        result = CliRunner().invoke(app, ["federate", *words])
        assert result.exit_code == 0, result.output
        return result.stdout.strip()

    keys = {name: run("identity", f"{name}.key") for name in (*NAMES[:3], "me")}
    sites = [part for name in NAMES[:3] for part in ("--site", f"{name}={keys[name]}")]
    started = run("start", "round", "--identity", "me.key", *sites, "--lexicon", str(hospital / "lexicon.tsv"))
    fingerprint = re.search(r"fingerprint (\S+)", started)
    assert fingerprint is not None
    for _ in range(3):
        said = [run("step", "round", str(hospital / name), "--identity", f"{name}.key") for name in NAMES[:3]]
        if _ == 0:
            assert all(fingerprint[1] in line for line in said)
    assert run("close", "round", "--identity", "me.key") == "present: east, north, south"
    for name in NAMES[:3]:
        run("step", "round", str(hospital / name), "--identity", f"{name}.key")
    shown = json.loads(run("sum", "round", "--identity", "me.key", "--out", "exact", "--json"))
    merged = merge_folders([hospital / name for name in NAMES[:3]], tmp_path / "merged")
    assert shown["edges"] == merged.n_edges
    run("sum", "round", "--identity", "me.key", "--private", "50,0.01,60", "--out", "noisy")
    noisy = Graph.load("noisy")
    assert noisy.made_with["private"]["pairs"] == 60
    assert not {"documents", "federated"} & set(noisy.made_with)
    assert noisy.hash != merged.hash

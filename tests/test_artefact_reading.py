"""Reading artefacts: one version of a folder even while it is replaced, and nothing that was not written with it."""

from __future__ import annotations

import json
import os
import shutil
import struct
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from small_model import small_data

from cogstage.artefact import (
    META,
    add_text,
    is_artefact,
    meta_hash,
    new_folder,
    read_folder,
    read_meta,
    replace_folder,
    to_json,
)
from cogstage.artefact_checks import size_and_hash
from cogstage.data import embedded
from cogstage.errors import CogstageError, UsageError
from cogstage.estimator import CogStage
from cogstage.graph.cooccurrence import Graph
from cogstage.graph.vocabulary import Vocabulary
from cogstage.knowledge.build import build_dataset
from cogstage.knowledge.dataset import Dataset
from cogstage.knowledge.facts import Facts
from test_flipped_bytes import make, make_facts

_on_open: list[tuple[str, Callable[[], None]]] = []  # what happens when a file whose path ends so is opened next


def _hook(event: str, arguments: tuple[object, ...]) -> None:
    if event == "open" and _on_open and str(arguments[0]).endswith(_on_open[0][0]):
        _on_open.pop()[1]()


@pytest.fixture
def when_opened() -> Iterator[Callable[[str, Callable[[], None]], None]]:
    """Do something at the moment when a file is opened."""
    if not getattr(_hook, "added", False):
        sys.addaudithook(_hook)
        _hook.added = True  # type: ignore[attr-defined]
    yield lambda name, action: _on_open.append((name, action))
    assert not _on_open, "the file was never opened"


def replace_by(source: Path, path: Path) -> None:
    fresh = path.parent / "fresh"
    shutil.copytree(source, fresh)
    replace_folder(fresh, path)


def write_version(path: Path, text: str) -> None:
    with new_folder(path, "graph", {"version": text}) as folder:
        for name in ("one.txt", "two.txt"):
            (folder / name).write_text(text, encoding="utf-8")


def test_a_folder_that_is_replaced_while_it_is_read_is_read_again(tmp_path: Path) -> None:
    write_version(tmp_path / "g", "old")
    seen = []

    def read(path: Path, meta: dict[str, object]) -> tuple[object, str, str]:
        one = (path / "one.txt").read_text(encoding="utf-8")
        if not seen:
            write_version(tmp_path / "g", "new")
        seen.append(one)
        return meta["made_with"], one, (path / "two.txt").read_text(encoding="utf-8")

    assert read_folder(tmp_path / "g", "graph", ("one.txt",), read) == ({"version": "new"}, "new", "new")
    assert seen == ["old", "new"]


def test_readers_wait_while_a_living_writer_is_between_its_renames(tmp_path: Path) -> None:
    """The folder has no name for a moment; readers neither fail nor take the writer's work out of its hands."""
    write_version(tmp_path / "g", "old")
    between, go_on = threading.Event(), threading.Event()
    plain = os.replace

    def slow(old: Path, new: Path) -> None:
        plain(old, new)
        if str(new).endswith(".g.old"):
            between.set()
            assert go_on.wait(30)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "replace", slow)
        writer = threading.Thread(target=write_version, args=(tmp_path / "g", "new"))
        writer.start()
        assert between.wait(30)
        assert not (tmp_path / "g").exists()
        threading.Timer(0.3, go_on.set).start()
        read = read_folder(tmp_path / "g", "graph", (), lambda path, meta: (path / "one.txt").read_text())
        writer.join()
    assert read == "new"
    with pytest.raises(UsageError, match="is not a folder"):
        read_folder(tmp_path / "absent", "graph", (), lambda path, meta: None)
    assert is_artefact(tmp_path / "g", "graph")


def numbered_graph(letter: str, count: int, n: int = 300) -> Graph:
    names = tuple(f"{letter}{number:03d}" for number in range(n))
    words = Vocabulary(names, names, names, ("",) * n, np.full(n, count, np.int64), ())
    source, target = np.triu_indices(n, 1)
    return Graph(words, source.astype(np.int32), target.astype(np.int32), np.full(len(source), count, np.int64))


def test_graphs_never_mix_while_they_are_replaced(tmp_path: Path) -> None:
    graphs = {"a": numbered_graph("a", 1), "b": numbered_graph("b", 2)}
    for name, graph in graphs.items():
        graph.save(tmp_path / name)
    shutil.copytree(tmp_path / "a", tmp_path / "g")
    stop, replaced = threading.Event(), []

    def write() -> None:
        while not stop.is_set():
            replace_by(tmp_path / "ba"[len(replaced) % 2], tmp_path / "g")
            replaced.append(1)
            stop.wait(0.03)  # a reader that is slower than every writer would never read a whole folder

    writer = threading.Thread(target=write)
    writer.start()
    try:
        loaded = [Graph.load(tmp_path / "g")]
        seen = {loaded[0].vocabulary.term[0][0]}
        while len(replaced) < 15 or (seen != {"a", "b"} and len(replaced) < 500):  # which one is read is chance
            loaded.append(Graph.load(tmp_path / "g"))
            seen.add(loaded[-1].vocabulary.term[0][0])
    finally:
        stop.set()
        writer.join()
    for graph in loaded:
        right = graphs[graph.vocabulary.term[0][0]]
        assert graph.vocabulary.term == right.vocabulary.term
        assert np.array_equal(graph.count, right.count)
    assert seen == {"a", "b"}


def test_a_data_set_that_is_replaced_while_it_is_read_is_whole(tmp_path: Path, when_opened: Callable) -> None:
    for seed in (0, 1):
        build_dataset(small_data()[0], make_facts(), tmp_path / str(seed), minimum=1, seed=seed)
    shutil.copytree(tmp_path / "0", tmp_path / "d")
    when_opened("d/leakage.json", lambda: replace_by(tmp_path / "1", tmp_path / "d"))
    read, wanted = Dataset.load(tmp_path / "d"), Dataset.load(tmp_path / "1")
    assert read.manifest == wanted.manifest != Dataset.load(tmp_path / "0").manifest
    for split in ("train", "dev", "test"):
        assert np.array_equal(read.facts(split).tail, wanted.facts(split).tail)


def test_facts_and_models_that_vanish_while_they_are_read_are_one_line(
    tmp_path: Path, small_model_folder: Path, when_opened: Callable
) -> None:
    make_facts().save(tmp_path / "f")
    (tmp_path / "f" / "facts.parquet").unlink()
    with pytest.raises(CogstageError, match=r"does not contain facts\.parquet"):
        Facts.load(tmp_path / "f")
    shutil.copytree(small_model_folder, tmp_path / "m")
    when_opened("m/config.json", lambda: shutil.rmtree(tmp_path / "m"))
    with pytest.raises(CogstageError, match="is not a folder") as caught:
        CogStage.load(tmp_path / "m")
    assert "\n" not in str(caught.value)


def test_a_model_that_is_replaced_while_it_is_read_is_whole(
    tmp_path: Path, small_model_folder: Path, when_opened: Callable
) -> None:
    shutil.copytree(small_model_folder, tmp_path / "m")
    shutil.copytree(small_model_folder, tmp_path / "other")
    metrics = json.loads((tmp_path / "other" / "metrics.json").read_text(encoding="utf-8"))
    add_text(tmp_path / "other", "metrics.json", to_json({**metrics, "mark": 7}))
    config = json.loads((tmp_path / "other" / "config.json").read_text(encoding="utf-8"))
    add_text(tmp_path / "other", "config.json", to_json({**config, "seed": 4711}))
    when_opened("m/metrics.json", lambda: replace_by(tmp_path / "other", tmp_path / "m"))
    model = CogStage.load(tmp_path / "m")
    assert (model.seed, model.metrics["mark"]) == (4711, 7)


def test_examples_of_a_replaced_graph_are_not_mixed_in(tmp_path: Path) -> None:
    from cogstage.graph.build import build_graph
    from cogstage.graph.options import BuildOptions

    (tmp_path / "notes.tsv").write_text("doc_id\tcodes\n1\ta;b\n2\ta;b\n3\tb;c\n", encoding="utf-8")
    build_graph(tmp_path / "notes.tsv", tmp_path / "g", options=BuildOptions(keep_examples=2))
    graph = Graph.load(tmp_path / "g")
    build_graph(tmp_path / "notes.tsv", tmp_path / "g", options=BuildOptions(keep_examples=2))
    with pytest.raises(CogstageError, match="was replaced since the graph was loaded; load it again"):
        _ = graph.examples
    assert Graph.load(tmp_path / "g").examples is not None


@pytest.mark.parametrize("kind", ["graph", "facts", "dataset", "model"])
def test_a_folder_without_hashes_is_refused(
    kind: str, tmp_path: Path, small_model_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = make(kind, tmp_path / kind, small_model_folder)
    meta = json.loads((tmp_path / kind / META).read_text(encoding="utf-8"))
    for dropped in (("files",), ("check",), ("files", "check")):
        rest = {key: value for key, value in meta.items() if key not in dropped}
        (tmp_path / kind / META).write_text(to_json(rest), encoding="utf-8")
        with pytest.raises(CogstageError, match=r"records no hashes|is damaged"):
            load()
    monkeypatch.setenv("COGSTAGE_NO_VERIFY", "1")
    load()


def test_the_embedded_graph_and_facts_have_hashes() -> None:
    for folder, kind in ((embedded.GRAPH, "graph"), (embedded.FACTS, "facts")):
        inside = {path.name for path in folder.iterdir()} - {META}
        assert set(read_meta(folder, kind)["files"]) == inside


def test_every_bit_of_the_demos_graph_and_facts_is_checked(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for source, load in ((embedded.GRAPH, Graph.load), (embedded.FACTS, Facts.load)):
        folder = tmp_path / source.name
        shutil.copytree(source, folder)
        for path in sorted(folder.iterdir()):
            sound = path.read_bytes()
            for place in rng.choice(len(sound), 10, replace=False).tolist():
                path.write_bytes(sound[:place] + bytes([sound[place] ^ 1]) + sound[place + 1 :])
                with pytest.raises(CogstageError):
                    load(folder)
            path.write_bytes(sound)
        load(folder)


def test_files_of_another_folder_are_refused(tmp_path: Path) -> None:
    """Exchanged files, and files that readers would use but that the folder was not written with."""
    one, other = numbered_graph("a", 1, 20), numbered_graph("b", 2, 20)
    one.save(tmp_path / "one")
    Graph(other.vocabulary, other.source, other.target, other.count, {}, np.ones((other.n_edges, 3), np.int32)).save(
        tmp_path / "other"
    )
    for name in ("terms.parquet", "edges.parquet", "REPORT.md", "order.parquet"):
        shutil.copytree(tmp_path / "one", tmp_path / "mixed")
        shutil.copyfile(tmp_path / "other" / name, tmp_path / "mixed" / name)
        with pytest.raises(CogstageError, match=f"{name} (is damaged|was not written with this graph)"):
            Graph.load(tmp_path / "mixed")
        shutil.rmtree(tmp_path / "mixed")


def test_a_comparison_gets_results_after_it_was_begun(tmp_path: Path) -> None:
    with new_folder(tmp_path / "c", "comparison", {}) as folder:
        (folder / "inputs.txt").write_text("inputs", encoding="utf-8")
    (tmp_path / "c" / "results.parquet").write_bytes(b"later")
    assert read_meta(tmp_path / "c", "comparison")


def test_an_added_file_is_hashed_and_a_kill_leaves_no_wrong_hash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_version(tmp_path / "g", "v")
    add_text(tmp_path / "g", "figures.json", "{}")
    assert "figures.json" in read_meta(tmp_path / "g", "graph")["files"]
    from cogstage import artefact

    plain, writes = artefact.write_text, []

    def killed(path: Path, *arguments: object) -> None:
        if len(writes) == stop:
            raise KeyboardInterrupt
        writes.append(path)
        plain(path, *arguments)  # type: ignore[arg-type]

    for stop in range(3):
        monkeypatch.setattr(artefact, "write_text", killed)
        writes.clear()
        with pytest.raises(KeyboardInterrupt):
            add_text(tmp_path / "g", "figures.json", f"[{stop}]")
        monkeypatch.setattr(artefact, "write_text", plain)
        read_meta(tmp_path / "g", "graph")
    (tmp_path / "g" / "one.txt").write_text("w", encoding="utf-8")
    with pytest.raises(CogstageError, match=r"one\.txt is damaged"):
        read_meta(tmp_path / "g", "graph")


def seal(folder: Path) -> None:
    """What a hostile author does: hashes that fit what lies in the folder."""
    meta = json.loads((folder / META).read_text(encoding="utf-8"))
    meta["files"] = {name: size_and_hash(folder / name) for name in meta["files"]}
    (folder / META).write_text(to_json({**meta, "check": meta_hash(meta)}), encoding="utf-8")


@pytest.mark.parametrize("name", ["meta.json", "edges.parquet", "terms.parquet"])
@pytest.mark.parametrize("verify", [True, False])
def test_a_pipe_in_a_folder_does_not_block(tmp_path: Path, name: str, verify: bool) -> None:
    numbered_graph("a", 1, 5).save(tmp_path / "g")
    (tmp_path / "g" / name).unlink()
    os.mkfifo(tmp_path / "g" / name)
    with pytest.raises(CogstageError, match=r"regular file|is damaged"):
        Graph.load(tmp_path / "g", verify)


def test_a_parquet_file_that_claims_too_many_rows_is_refused(tmp_path: Path) -> None:
    numbered_graph("a", 1, 5).save(tmp_path / "g")
    rows = 1 << 26
    column = pa.DictionaryArray.from_arrays(pa.array(np.zeros(1 << 20, np.int32)), pa.array([0], pa.int32()))
    table = pa.table({"source": column, "target": column, "count": column})
    with pq.ParquetWriter(tmp_path / "g" / "edges.parquet", table.schema, compression="zstd") as writer:
        for _ in range(rows >> 20):
            writer.write_table(table, row_group_size=1 << 20)
    seal(tmp_path / "g")
    with pytest.raises(CogstageError, match="claims 67,108,864 rows"):
        Graph.load(tmp_path / "g")


@pytest.mark.parametrize("bomb", ["header", "shape", "overlap", "nesting"])
def test_a_safetensors_header_that_lies_is_refused(tmp_path: Path, small_model_folder: Path, bomb: str) -> None:
    shutil.copytree(small_model_folder, tmp_path / "m")
    size, begin = 1 << 40, 0
    header = {"x": {"dtype": "F32", "shape": [size], "data_offsets": [begin, 4 * size]}}
    if bomb == "overlap":
        header = {name: {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]} for name in "xyz"}
    text = json.dumps(header).encode() if bomb != "nesting" else b"[" * 200_000
    length = 1 << 60 if bomb == "header" else len(text)
    (tmp_path / "m" / "model.safetensors").write_bytes(struct.pack("<Q", length) + text + bytes(16))
    seal(tmp_path / "m")
    with pytest.raises(CogstageError, match="is damaged") as caught:
        CogStage.load(tmp_path / "m")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["[" * 200_000, "{}", "null", '{"kind": "graph"'])
def test_a_meta_that_is_no_meta_is_one_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "g").mkdir()
    (tmp_path / "g" / META).write_text(text, encoding="utf-8")
    with pytest.raises(CogstageError) as caught:
        read_meta(tmp_path / "g", "graph")
    assert "\n" not in str(caught.value)
    assert not is_artefact(tmp_path / "g", "graph")
    with (tmp_path / "g" / META).open("wb") as handle:
        handle.truncate(1 << 40)  # a file of zeros that takes no space
    with pytest.raises(CogstageError, match="too large"):
        read_meta(tmp_path / "g", "graph")

"""Vectors that others publish, in each format, and ours for Gensim."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from small_model import small_data

from cogstage.baselines.encoded import EncodedMethod
from cogstage.baselines.published_vectors import PublishedVectors, vectors_of
from cogstage.baselines.resolver import component, resolve_scorer
from cogstage.errors import CogstageError, UsageError
from cogstage.estimator import CogStage

WORDS = ["C004", "Drug_number_6", "remedy 8", "disorder NUMBER 7", "nothing of ours"]  # key, name, synonym, name
NODES = [4, 6, 8, 7]
VECTORS = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)


def files(folder: Path) -> dict[str, Path]:
    """The same vectors in each format; text formats cannot have words with blanks."""
    gensim = pytest.importorskip("gensim")
    names = ("binary.bin", "word2vec.txt", "glove.txt.gz", "cui2vec.csv", "table.tsv", "list.parquet", "wide.parquet")
    paths = {name: folder / name for name in names}
    words = [word.replace(" ", "_") for word in WORDS]
    keyed = gensim.models.KeyedVectors(3)
    keyed.add_vectors(words, VECTORS)
    keyed.save_word2vec_format(str(paths["binary.bin"]), binary=True)
    keyed.save_word2vec_format(str(paths["word2vec.txt"]))
    lines = [" ".join([word, *map(repr, row.tolist())]) for word, row in zip(words, VECTORS, strict=True)]
    with gzip.open(paths["glove.txt.gz"], "wt") as handle:
        handle.write("\n".join(lines) + "\n")
    for name, mark in (("cui2vec.csv", ","), ("table.tsv", "\t")):
        rows = [mark.join(['"' + w + '"', *map(repr, row.tolist())]) for w, row in zip(WORDS, VECTORS, strict=True)]
        paths[name].write_text(mark.join(['""', '"V1"', '"V2"', '"V3"']) + "\n" + "\n".join(rows) + "\n")
    pq.write_table(pa.table({"id": WORDS, "vector": VECTORS.tolist()}), paths["list.parquet"])
    wide = {f"d{n}": VECTORS[:, n] for n in range(3)}
    pq.write_table(pa.table({"id": WORDS, **wide}), paths["wide.parquet"])
    return paths


def test_every_format_gives_the_same_vectors(tmp_path: Path) -> None:
    vocabulary = small_data()[0].vocabulary
    expected = np.zeros((len(vocabulary), 3), np.float32)
    expected[NODES] = VECTORS[:4]
    for name, path in files(tmp_path).items():
        vectors, found = vectors_of(vocabulary, path)
        assert np.flatnonzero(found).tolist() == sorted(NODES), name
        assert np.allclose(vectors, expected, atol=1e-6), name


def test_a_key_is_stronger_than_a_name(tmp_path: Path) -> None:
    (tmp_path / "v.txt").write_text("drug_number_4 1 1\nC004 2 2\nremedy_4 3 3\n")
    vectors, _ = vectors_of(small_data()[0].vocabulary, tmp_path / "v.txt")
    assert vectors[4].tolist() == [2, 2]


def test_it_is_an_encoder_like_the_others(tmp_path: Path, model: CogStage) -> None:
    pytest.importorskip("gensim")
    keyed = model.to_keyed_vectors()
    assert keyed.index_to_key == list(model.vocabulary.term)
    keyed.save_word2vec_format(str(tmp_path / "ours.bin"), binary=True)
    graph, data = small_data()
    encoder = PublishedVectors(str(tmp_path / "ours.bin"))
    assert np.array_equal(encoder.encode(graph, data.for_fitting(), 0), model.fitted.network.term)
    method = EncodedMethod(encoder, resolve_scorer("distmult", component("scorers", "distmult").quick))
    method.fit(graph, data.for_fitting(), "may_treat")
    pairs = data.pairs("may_treat", "dev")
    assert np.isfinite(method.scores(pairs.head, pairs.tail)).all()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", b"nothing 1 2\n", "no word of the file is a key, concept or name"),
        ("a.txt", b"C004 one two\n", "not a table of vectors"),
        ("a.bin", b"5 3\nC004 \0\0", "it ends early"),
        ("a.bin", b"1 99999999999\nC004 ", "vectors of length 99999999999"),
        ("a.csv", b"id,x\nC004,word\n", "not a table of vectors"),
        ("a.parquet", b"PAR1", "not a table of vectors"),
    ],
)
def test_bad_files_are_named(name: str, content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(CogstageError, match=message):
        vectors_of(small_data()[0].vocabulary, tmp_path / name)


def test_a_missing_file_is_wrong_use() -> None:
    with pytest.raises(UsageError, match="no such file"):
        vectors_of(small_data()[0].vocabulary, Path("missing.bin"))

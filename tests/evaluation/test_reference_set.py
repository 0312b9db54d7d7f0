"""A reference set: read, mapped onto the graph, and measured; figures by counting pairs one by one."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from cogstage.errors import CogstageError, UsageError
from cogstage.evaluation.metrics import auroc, auroc_within
from cogstage.evaluation.reference_set import ReferenceSet, evaluate_reference, map_pairs
from cogstage.graph.vocabulary import Vocabulary
from cogstage.knowledge.hold_out import HoldOut
from cogstage.knowledge.located import Concepts
from cogstage.triples import Triples

rows = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 4), st.integers(0, 2)), min_size=1, max_size=25)


def counted(label: list[int], score: list[float], group: list[int] | None = None) -> float:
    """Concordant pairs over all pairs, ties half, one by one."""
    right = total = 0.0
    for i, j in product(range(len(label)), repeat=2):
        if label[i] == 1 and label[j] == 0 and (group is None or group[i] == group[j]):
            total += 1
            right += 1.0 if score[i] > score[j] else 0.5 if score[i] == score[j] else 0.0
    return right / total if total else float("nan")


@given(rows)
@settings(max_examples=80, deadline=None)
def test_auroc_overall_and_within_groups_by_counting(drawn: list[tuple[int, int, int]]) -> None:
    label, score, group = ([row[i] for row in drawn] for i in range(3))
    whole = auroc(np.array(label), np.array(score) * 100.0)[0]
    assert whole == pytest.approx(counted(label, score), nan_ok=True)
    within = auroc_within(np.array(label), np.array(score), np.array(group))[0]
    assert within == pytest.approx(counted(label, score, group), nan_ok=True)
    if len(set(label)) == 2:
        assert whole == pytest.approx(roc_auc_score(label, score))


@given(rows, st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_weights_are_repetitions(drawn: list[tuple[int, int, int]], seed: int) -> None:
    times = np.random.default_rng(seed).integers(0, 3, len(drawn))
    repeated = [row for row, n in zip(drawn, times, strict=True) for _ in range(n)]
    label, score, group = (np.array([row[i] for row in drawn]) for i in range(3))
    found = auroc_within(label, score, group, times[None].astype(float))[0]
    expected = counted(*([row[i] for row in repeated] for i in range(3)))
    assert found == pytest.approx(expected, nan_ok=True)


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    reference, outcomes = tmp_path / "reference.tsv", tmp_path / "outcomes.tsv"
    lines = ["drug\toutcome\tlabel"]
    lines += [f"drug {i}\tliver\t{int(i < 3)}" for i in range(6)]
    lines += [f"Drug {i}\tkidney\t{int(i % 2 == 0)}" for i in range(6)]
    lines += ["unheard of\tliver\t1", "drug 1\theart\t0"]
    reference.write_text("\n".join(lines) + "\n", encoding="utf-8")
    outcomes.write_text(
        "outcome\tconcept\nliver\thepatitis\nliver\tliver failure\nkidney\trenal failure\nheart\tinfarction\n",
        encoding="utf-8",
    )
    return reference, outcomes


VOCABULARY = Vocabulary.from_terms([*(f"drug {i}" for i in range(6)), "hepatitis", "liver failure", "renal failure"])


def test_pairs_are_mapped_and_missing_ones_counted(files: tuple[Path, Path]) -> None:
    mapped = map_pairs(ReferenceSet.load(*files), VOCABULARY)
    assert (mapped.asked, len(mapped.label)) == (14, 12)
    assert set(mapped.missing) == {"unheard of", "infarction"}
    assert mapped.tail[mapped.pair == 0].tolist() == [6, 7]  # both concepts of the outcome
    assert mapped.tail[mapped.pair == 6].tolist() == [8]
    assert mapped.highest(np.arange(len(mapped.pair), dtype=float))[0] == 1.0


def test_a_drug_is_found_over_spelling_and_salt_as_it_is_held_out(tmp_path: Path) -> None:
    path = tmp_path / "reference.tsv"
    path.write_text("drug\ttail\tlabel\nmometasone\tedema\t1\nferrous sulfate\toedema\t0\n", encoding="utf-8")
    names = ("Mometasone furoate", "mometasone hydrate", "ferrous sulphate", "oedema")
    vocabulary = Vocabulary(names, names, names, ("drug", "drug", "drug", "disorder"), np.array([3, 9, 2, 5]))
    mapped = map_pairs(ReferenceSet.load(path), vocabulary)
    assert mapped.missing == ()
    assert mapped.head.tolist() == [1, 2]  # the more frequent salt
    assert mapped.tail.tolist() == [3, 3]
    concepts = Concepts.from_vocabulary(vocabulary, {})
    held, missing = HoldOut.read(path).numbers(vocabulary, concepts, {})
    assert not missing
    heads, tails = np.array([0, 1, 2]), np.array([3, 3, 3])
    assert sorted(held.tolist()) == sorted(concepts.pair(heads, tails).tolist())  # both salts are held out


def test_figures_and_popularity_rows(files: tuple[Path, Path]) -> None:
    """The model is right about the liver and knows nothing of the kidney; drug 5 is the most popular."""
    table = np.zeros((9, 9))
    table[:3, 7] = [0.9, 0.8, 0.7]
    table[3:6, 6] = [0.3, 0.2, 0.1]
    head = np.array([5, 5, 5, 4, 4, 0, 0], np.int32)
    tail = np.array([6, 7, 8, 6, 7, 6, 8], np.int32)
    relation = np.array([1, 1, 1, 1, 1, 1, 0], np.int16)
    result = evaluate_reference(
        ReferenceSet.load(*files),
        VOCABULARY,
        lambda h, t: table[h, t],
        Triples(head, relation, tail),
        ("may_treat", "causes"),
        "causes",
        lambda h, t: np.ones(len(h)),
    )
    label = [1, 1, 1, 0, 0, 0, 1, 0, 1, 0, 1, 0]
    group = [0] * 6 + [1] * 6
    model = [0.9, 0.8, 0.7, 0.3, 0.2, 0.1, *[0.0] * 6]
    popular = [1, 0, 0, 0, 2, 3] * 2
    of_tail = [3] * 6 + [1] * 6
    both = [a * b for a, b in zip(popular, of_tail, strict=True)]
    for name, score in {
        "model": model,
        "known facts of the head": popular,
        "known facts of the tail": of_tail,
        "known facts of head × tail": both,
        "PPMI": [1.0] * 12,
    }.items():
        figures = result.rows[name]
        assert figures["overall"]["value"] == pytest.approx(counted(label, score)), name
        assert figures["within"]["value"] == pytest.approx(counted(label, score, group)), name
        assert figures["outcomes"]["liver"]["value"] == pytest.approx(counted(label[:6], score[:6])), name
        assert np.isnan(figures["outcomes"]["heart"]["value"])
        low, high = figures["overall"]["interval"]
        assert low <= figures["overall"]["value"] <= high
    assert result.rows["model"]["outcomes"]["liver"]["value"] == 1.0
    assert (result.covered, result.pairs, result.positives, result.known) == (12, 14, 6, 4)
    assert "4 of the 12 covered pairs are training facts" in result.warnings()[0]
    text = result.table().text()
    assert "12 of 14 pairs covered (86%)" in text
    assert "known facts of the head" in text
    assert result.to_dict()["missing"] == ["unheard of", "infarction"]


def test_a_popular_head_that_beats_the_model_is_said(files: tuple[Path, Path]) -> None:
    facts = Triples(np.array([0, 0, 1, 2], np.int32), np.zeros(4, np.int16), np.array([8, 7, 8, 8], np.int32))
    arguments = (
        VOCABULARY,
        lambda h, t: -h.astype(float) % 5,
        facts,
        ("causes",),
        "causes",
        lambda h, t: np.ones(len(h)),
    )
    result = evaluate_reference(ReferenceSet.load(*files), *arguments)
    assert any(
        "known facts of the head alone" in line and "better than the model" in line for line in result.warnings()
    )


def test_tables_that_cannot_be_read_are_explained(tmp_path: Path) -> None:
    path = tmp_path / "r.tsv"
    for content, words in (
        ("head\ttail\tlabel\na\tb\tmaybe\n", "is not a label"),
        ("head\ttail\na\tb\n", "no column label"),
        ("head\toutcome\tlabel\na\tliver\t1\n", None),
        ("head\ttail\tlabel\n", "contains no pairs"),
        ("head\tlabel\na\t1\n", "needs a head and a tail"),
    ):
        path.write_text(content, encoding="utf-8")
        if words is None:  # an outcome whose concepts nobody names stands for itself
            with pytest.raises(UsageError, match="has no tail"):
                ReferenceSet.load(path)
        else:
            with pytest.raises(CogstageError, match=words):
                ReferenceSet.load(path)
    path.write_text("head\ttail\tlabel\ndrug 1\thepatitis\t1\nx\ty\t0\n", encoding="utf-8")
    with pytest.raises(UsageError, match="1 of 2 reference pairs"):
        evaluate_reference(
            ReferenceSet.load(path), VOCABULARY, lambda h, t: h, Triples.join([]), ("causes",), "causes", lambda h, t: h
        )

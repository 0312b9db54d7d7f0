"""What the default model's batches are made of, and what they may know."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cogstage.errors import LeakageError, UsageError
from cogstage.graph.cooccurrence import Graph
from cogstage.knowledge.dataset import Dataset, Pairs
from cogstage.model.config import Config
from cogstage.training.sampling import RANDOM_WEIGHT, PairBatch, Sampler
from cogstage.triples import Triples, UsualTypes

World = tuple[Graph, Dataset]
Triple = tuple[int, int, int]


def sampler_of(small: World, **options: Any) -> Sampler:
    return Sampler(small[1].for_fitting(), Config(**options), small[0], [0, 1])


def pairs_of(batch: PairBatch | Pairs) -> list[tuple[int, int]]:
    return list(zip(batch.head.tolist(), batch.tail.tolist(), strict=True))


def rows_of(facts: Triples) -> set[Triple]:
    return set(zip(facts.head.tolist(), facts.relation.tolist(), facts.tail.tolist(), strict=True))


def joined(dataset: Dataset, split: str) -> set[tuple[int, int]]:
    there = {(h, t) for h, _, t in rows_of(dataset.facts(split))}
    return there | {(b, a) for a, b in there}


def added(sampler: Sampler, dataset: Dataset, target: int) -> list[tuple[int, int]]:
    """The training pairs of stage 3 that the data set does not list."""
    train, listed = sampler.train[target], dataset.pairs(dataset.relations[target], "train")
    assert pairs_of(train)[: len(listed)] == pairs_of(listed)
    assert np.array_equal(train.label[: len(listed)], listed.label)
    assert not train.label[len(listed) :].any()
    return pairs_of(train)[len(listed) :]


def test_negatives_avoid_training_facts_and_know_no_others(small: World) -> None:
    sampler, rng = sampler_of(small), np.random.default_rng(0)
    known = joined(small[1], "train")
    elsewhere = (joined(small[1], "dev") | joined(small[1], "test")) - known
    met = 0
    for fold in (-1, 0, 3):
        for _ in range(60):
            batch = sampler.triple_batch(rng, fold)
            unrelated = batch.triples[(batch.label == 0) & (batch.related_weight > 0)]
            drawn = set(map(tuple, unrelated[:, [0, 2]].tolist()))
            assert not drawn & known
            assert all(head != tail for head, tail in drawn)
            met += len(drawn & elsewhere)
            assert set(map(tuple, batch.triples[batch.label == 1].tolist())) <= rows_of(small[1].facts("train"))
    assert met > 0  # a user knows no dev or test facts, so neither does the sampler


def test_co_occurring_negatives_co_occur_and_hold_no_training_fact(small: World) -> None:
    graph, dataset = small
    together = {frozenset(pair) for pair in zip(graph.source.tolist(), graph.target.tolist(), strict=True)}
    known, facts = joined(dataset, "train"), rows_of(dataset.facts("train"))
    elsewhere = (joined(dataset, "dev") | joined(dataset, "test")) - known
    sampler = sampler_of(small, other_facts=0.0, co_occurring=1.5)
    met = 0
    for target in (0, 1):
        pairs = added(sampler, dataset, target)
        heads, tails = ({fact[end] for fact in facts if fact[1] == target} for end in (0, 2))
        n_facts = sum(1 for _, k, _ in facts if k == target)
        possible = {(h, t) for h in heads for t in tails if frozenset((h, t)) in together and (h, t) not in known}
        assert len(set(pairs)) == len(pairs) == min(round(1.5 * n_facts), len(possible)) > 20
        assert set(pairs) <= possible
        met += len(set(pairs) & elsewhere)
    assert met > 0  # dev and test facts are not known
    assert not added(sampler_of(small, other_facts=0.0, co_occurring=0.0), dataset, 0)


def test_co_occurring_negatives_are_the_same_whatever_dev_and_test_hold(small: World) -> None:
    graph, dataset = small
    facts = {split: dataset.facts(split) for split in ("train", "dev", "test")}
    changed = replace(dataset, _facts={**facts, "dev": facts["test"], "test": facts["dev"]})
    one, other = sampler_of(small), sampler_of((graph, changed))
    for target in (0, 1):
        assert pairs_of(one.train[target]) == pairs_of(other.train[target])


def test_typed_negatives_take_heads_from_heads_and_tails_from_tails(small: World) -> None:
    sampler, facts = sampler_of(small), small[1].facts("train")
    batch = sampler.triple_batch(np.random.default_rng(0))
    count, fresh = Config().recognition_batch, Config().fresh_negatives
    typed = batch.related_weight == np.float32(1 / (1 + fresh))
    typed &= np.arange(len(typed)) >= 2 * count  # behind facts and training negatives
    assert typed.sum() > 2 * count
    for head, relation, tail in batch.triples[typed]:
        same = facts.relation == relation
        assert head in facts.head[same]
        assert tail in facts.tail[same]


def test_weights_of_a_batch(small: World) -> None:
    """s learns from facts and unrelated pairs, d from facts and as many facts of other relations."""
    sampler, rng, facts = sampler_of(small), np.random.default_rng(0), rows_of(small[1].facts("train"))
    count, fresh = Config().recognition_batch, Config().fresh_negatives
    known = joined(small[1], "train")
    for fold in (-1, 1):
        batch = sampler.triple_batch(rng, fold)
        assert len(batch) == len(batch.label) == len(batch.related_weight) == len(batch.contrast_weight)
        is_fact = batch.label == 1
        assert is_fact.sum() == count
        assert (batch.related_weight[is_fact] == 1).all()
        assert (batch.contrast_weight[is_fact] == 1).all()
        others = (batch.related_weight == 0) & ~is_fact
        unrelated = (batch.related_weight > 0) & ~is_fact
        assert (batch.contrast_weight[others] == 1).all()
        assert (batch.contrast_weight[unrelated] == 0).all()
        assert 0 < others.sum() <= count
        for head, relation, tail in batch.triples[others].tolist():
            assert (head, relation, tail) not in facts
            assert (head, tail) in known
        weights = batch.related_weight[unrelated]
        share = float(np.float32(1 / (1 + fresh)))
        assert set(np.unique(weights).tolist()) == {RANDOM_WEIGHT, share, 1.0}
        assert 0.8 * count < (weights == RANDOM_WEIGHT).sum() <= count
        assert 0.8 * count < weights[weights == share].sum() <= count + 1e-3
        together = batch.triples[unrelated][weights == 1.0]
        assert 0 < len(together) <= round(Config().co_occurring * count)
        assert (sampler.counts.counts(together[:, 0], together[:, 2]) > 0).all()
        assert np.array_equal(batch.weight, np.maximum(batch.related_weight, batch.contrast_weight))
        half = batch[np.arange(0, len(batch), 2)]
        assert np.array_equal(half.contrast_weight, batch.contrast_weight[::2])


def test_contrasts_have_the_relation_of_a_fact_each(small: World) -> None:
    """As many of each relation as facts of it, where pairs that hold others only are there."""
    sampler = sampler_of(small)
    batch = sampler.triple_batch(np.random.default_rng(0))
    others = batch.triples[(batch.contrast_weight == 1) & (batch.label == 0)]
    assert np.bincount(others[:, 1]).tolist() == np.bincount(batch.triples[batch.label == 1][:, 1]).tolist()


def test_facts_of_other_relations_are_negatives(small: World) -> None:
    """In the contrast and in stage 3: pairs that hold another relation and not this one, with types that fit."""
    dataset, sampler, rng = small[1], sampler_of(small), np.random.default_rng(0)
    facts = dataset.facts("train")
    usual = UsualTypes(small[0].vocabulary.type, facts, len(dataset.relations))
    every = rows_of(facts)

    def check(head: int, relation: int, tail: int) -> None:
        assert (head, relation, tail) not in every
        assert any((head, k, tail) in every or (tail, k, head) in every for k in range(len(dataset.relations)))
        assert usual.allowed(np.array([head]), np.array([tail]))[0, relation]

    for fold in (-1, 0, 2):
        hidden = {pair for train in sampler.train.values() for pair in pairs_of(train[train.fold == fold])}
        for _ in range(10):
            batch = sampler.triple_batch(rng, fold)
            for head, relation, tail in batch.triples[(batch.related_weight == 0)].tolist():
                check(head, relation, tail)
                assert fold < 0 or (head, tail) not in hidden
    only = sampler_of(small, co_occurring=0.0)
    for target in (0, 1):
        pairs = added(only, dataset, target)
        positives = int(dataset.pairs(dataset.relations[target], "train").label.sum())
        assert 0 < len(pairs) == len(set(pairs)) <= round(Config().other_facts * positives)
        for head, tail in pairs:
            check(head, target, tail)
        assert len(added(sampler, dataset, target)) > len(pairs)
        assert not added(sampler_of(small, other_facts=0.0, co_occurring=0.0), dataset, target)


def test_folds_hide_their_pairs(small: World) -> None:
    sampler, rng = sampler_of(small), np.random.default_rng(0)
    for train in sampler.train.values():
        assert set(train.fold.tolist()) == set(range(Config().folds))  # further negatives have folds, too
    for fold in range(Config().folds):
        own = {pair for train in sampler.train.values() for pair in pairs_of(train[train.fold == fold])}
        own |= {(b, a) for a, b in own}
        for _ in range(10):
            seen = sampler.triple_batch(rng, fold).triples[:, [0, 2]]
            assert not own & set(map(tuple, seen.tolist()))
    for train in sampler_of(small, folds=0).train.values():
        assert (train.fold == -1).all()


def test_negatives_lack_as_many_facts_as_positives(small: World) -> None:
    """A positive's own fold hides a fact of its head and one of its tail; so does that of a negative where it can."""
    sampler = sampler_of(small)
    facts, folds = small[1].facts("train"), sampler.fact_folds
    assert folds is not None
    known = joined(small[1], "train")
    every = [pair for train in sampler.train.values() for pair in {tuple(sorted(p)) for p in pairs_of(train)}]
    twice = {pair for pair in every if every.count(pair) > 1}  # a negative of two relations has one fold
    checked = 0
    for target, train in sampler.train.items():
        same = facts.relation == target
        for number in np.flatnonzero(train.label == 0).tolist():
            head, tail = int(train.head[number]), int(train.tail[number])
            if tuple(sorted((head, tail))) in twice or (head, tail) in known:
                continue
            of_head = set(folds[same & (facts.head == head)].tolist())
            of_tail = set(folds[same & (facts.tail == tail)].tolist())
            wanted = of_head & of_tail or of_head | of_tail
            assert not wanted or train.fold[number] in wanted
            checked += 1
    assert checked > 100


def test_small_relations_get_their_steps(small: World) -> None:
    options = {"pair_batch": 16, "decision_epochs": 2}
    sampler = sampler_of(small, **options, decision_steps=0)
    for target, train in sampler.train.items():
        size = len(train)
        least = 3 * size / 16
        once = np.concatenate(sampler.pair_batches(target, np.random.default_rng(0)))
        assert sorted(once.tolist()) == list(range(size))
        more = sampler_of(small, **options, decision_steps=int(2 * least) + 1)
        batches = more.pair_batches(target, np.random.default_rng(0))
        drawn = np.bincount(np.concatenate(batches))
        assert len(set(drawn.tolist())) == 1  # every pair as often
        assert len(batches) >= least
        assert max(map(len, batches)) == 16


def with_hard(dataset: Dataset, pairs: dict[str, list[tuple[int, int]]]) -> Dataset:
    made = {}
    for relation, given in pairs.items():
        head, tail = np.array(given, np.int32).reshape(-1, 2).T
        made["hard", relation, "dev"] = Pairs(head, tail, np.zeros(len(head), np.int8))
        made["hard", relation, "test"] = Pairs(tail, head, np.zeros(len(head), np.int8))
    return replace(dataset, _negatives=made)


def test_contrasts_of_dev_are_hard_negatives_and_dev_facts_of_other_relations(small: World) -> None:
    graph, dataset = small
    hard = [(0, 1), (3, 4)]
    sampler = sampler_of((graph, with_hard(dataset, {dataset.relations[0]: hard})))
    train, usual = dataset.facts("train"), UsualTypes(graph.vocabulary.type, dataset.facts("train"), 2)
    positives = {
        (number, *pair)
        for number, name in enumerate(dataset.relations)
        for pair, label in zip(pairs_of(dataset.pairs(name, "dev")), dataset.pairs(name, "dev").label, strict=True)
        if label
    }
    for target in (0, 1):
        contrasts = sampler.contrasts(target)
        assert list(map(tuple, contrasts["co-occurring"].tolist())) == (hard if target == 0 else [])
        both = {(h, t) for _, h, t in positives} | {(t, h) for _, h, t in positives}
        expected = {
            (h, t)
            for h, t in both
            if (target, h, t) not in positives
            and (h, target, t) not in rows_of(train)
            and usual.allowed(np.array([h]), np.array([t]))[0, target]
        }
        others = list(map(tuple, contrasts["other relations"].tolist()))
        assert set(others) == expected
        assert len(others) == len(expected) > 0


def test_saved_negatives_of_test_are_not_for_fitting(small: World) -> None:
    dataset = with_hard(small[1], {"may_treat": [(0, 1)]})
    assert pairs_of(dataset.negatives("may_treat", "test", "hard")) == [(1, 0)]
    view = dataset.for_fitting()
    assert pairs_of(view.negatives("may_treat", "dev", "hard")) == [(0, 1)]
    assert len(view.negatives("may_treat", "dev", "uniform")) == 0
    with pytest.raises(LeakageError, match="test negatives of may_treat were requested during fitting"):
        view.negatives("may_treat", "test", "hard")
    assert not any(split == "test" for _, _, split in view._negatives)


def test_too_few_facts_for_folds_is_said(small: World) -> None:
    facts = {**small[1]._facts, "train": Triples(*(np.array([end], kind) for end, kind in
             ((0, np.int32), (0, np.int16), (1, np.int32))))}  # fmt: skip
    with pytest.raises(UsageError, match="too few training facts for folds=4; set folds=0"):
        sampler_of((small[0], replace(small[1], _facts=facts)))

"""Every option of the model and its training, with its default and why."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cogstage.errors import UsageError

CHOICES = {
    "world": ("open", "closed"),
    "candidates": ("facts", "all"),
    "recognition": ("transe", "bilinear"),
    "schedule": ("constant", "one_cycle"),
    "mask": ("target", "pair"),
    "attention": ("softmax", "sparsemax", "entmax"),
    "recall_loss": ("mean", "sum"),
    "optimizer": ("lazy_adam", "adam"),
    "warm_start": ("none", "svd"),
    "precision": ("float32", "bf16"),
}


@dataclass(frozen=True)
class Config:
    """What is trained and how. The defaults are the preset ``default``."""

    # the model
    world: str = "open"  # "closed": assumptions are training facts, not recognised pairs
    dimension: int = 128  # d of the term and relation vectors
    associations: int = 32  # N_c: terms recalled for each target term
    candidates: str = "facts"  # what may be recalled: terms of the training facts, or "all"
    assumptions: int = 100  # closed world: how many training facts are weighed
    recognition: str = "bilinear"  # s_k: "transe" -‖υ_i + ξ_k - υ_j‖₁, or "bilinear" (see bilinear.py)
    tower: int = 128  # bilinear: width of the towers
    folds: int = 4  # stage 3 learns from recognition that has not seen the pair's own fold of the facts; 0 is off
    term_vectors: bool = False  # e_ij sees the vectors of its two terms, not only how they are related
    recall_features: bool = True  # e_ij sees how strongly its terms were recalled, and whether they are the targets
    pair_dimension: int = 16  # width of e_ij; 0 is that of the terms
    temperature: float = 4.0  # attention is sharpened by a learned factor that begins here; 0 is without
    nearness: bool = True  # e_ij sees the cosines of its terms to the targets they were recalled for
    mask: str = "pair"  # what is hidden of the target: its "target" relation, or the "pair" with any relation
    typed_relations: bool = True  # a relation is only recognised between types that its training facts usually join
    known_facts: bool = True  # an assumption that is a training fact is recognised, and e_ij is told so
    silent_unformed: bool = True  # an assumption in which no relation beats NA takes attention, but its value is 0
    informed_start: bool = True  # stage 3 begins from the leads of the target's relation near the target (informed.py)
    attention_layer: bool = False  # g = vᵀ·tanh(W_a·e + b_a); without it g = vᵀ·e
    margins: bool = True  # assumptions also carry by how far relations beat NA, mapped linearly into e_ij
    margin_clip: float = 6.0  # s_k - s_NA is cut to [0, clip]
    term_offset: bool = False  # stages 2 and 3 see υ_i + δ_i with a learned δ_i, not υ_i itself
    attention: str = "softmax"  # "sparsemax" and "entmax" give most assumptions a weight of exactly 0
    dropout: float = 0.0  # share of e_ij's coordinates dropped in training
    attention_dropout: float = 0.1  # share of the assumptions left out of a pair's attention in training
    term_dropout: float = 0.0  # share of the term vectors' coordinates dropped in stages 2 and 3

    # stage 1, L_n
    ppmi_shift: float = 0.0  # subtracted from PPMI before the cut at zero
    ppmi_smoothing: float = 1.0  # exponent of the context distribution; 1 is off
    recall_loss: str = "mean"  # L_n averaged over a batch's nodes, or "sum" as in the published code
    warm_start: str = "svd"  # "svd": υ and υ' begin as a truncated SVD of PPMI
    recall_batch: int = 512  # nodes in a batch of L_n
    pretrain_recall: int = 12  # passes over the nodes with L_n before the first batch of L_p
    recall_rate: float = 5e-3  # learning rate of that pre-training; 0 is learning_rate
    recall_steps: int = 0  # steps of L_n in each iteration of Algorithm 1; 0 leaves stage 1 as pre-trained

    # stage 2, L_r
    recognition_batch: int = 256  # triples in a batch of L_r; inverse triples come on top
    negatives: int = 100  # corrupted heads, and as many corrupted tails, for each triple
    typed_negatives: float = 0.75  # share of them drawn from the relation's own heads or tails
    fresh_negatives: int = 4  # bilinear: typed negatives drawn for each fact, besides the training negatives
    na_pairs: int = 128  # NA triples in a batch of L_r: training negatives and random candidate pairs, half and half
    pretrain_recognition: int = 12  # passes over the training facts with L_r before the first batch of L_p
    recognition_rate: float = 2e-3  # learning rate of that pre-training; 0 is learning_rate
    recognition_decay: float = 0.05  # decoupled weight decay of stage 2
    offset_decay: float = 0.3  # decoupled weight decay of the learned δ_i
    recognition_dropout: float = 0.5  # bilinear: share of the towers' coordinates dropped in training
    recognition_steps: int = 0  # steps of L_r in each iteration; 0 leaves stage 2 as pre-trained

    # stage 3, L_p, and the course of training
    pair_batch: int = 64  # pairs in a batch of L_p
    comprehensiveness: float = 1.0  # weight of the demand that p falls when a positive pair's top 5 are removed
    comprehensiveness_goal: float = 0.3  # by how much it should fall
    pairs_reach_terms: bool = False  # L_p also moves the term and relation vectors, not stage 3 alone
    refresh_every: int = 0  # iterations between two recalls of the associations; 0 is once an epoch
    epochs: int = 4  # at most
    least_steps: int = 100  # more epochs than that where a data set is so small that they make fewer steps
    patience: int = 10  # epochs without a better dev F1 before training stops; under one_cycle the last epoch is kept
    optimizer: str = "lazy_adam"  # moments of a term's row move only when the row is touched; "adam" is dense
    learning_rate: float = 5e-3  # of Adam
    schedule: str = "one_cycle"  # "one_cycle": the rate of each phase rises for a tenth of it, then falls to nothing
    weight_decay: float = 0.01  # decoupled, on stage 3
    clip: float = 1.0  # largest norm of a gradient; 0 is off
    precision: str = "float32"  # "bf16": products of stage 3 in bfloat16 where the CPU or GPU has it

    def __post_init__(self) -> None:
        for name, allowed in CHOICES.items():
            if getattr(self, name) not in allowed:
                raise UsageError(f"option {name}={getattr(self, name)}: choose one of {', '.join(allowed)}")
        positive = "dimension associations assumptions recall_batch recognition_batch pair_batch epochs patience"
        for name in positive.split():
            if getattr(self, name) < 1:
                raise UsageError(f"option {name}={getattr(self, name)}: must be at least 1")
        for name in ("dropout", "term_dropout", "attention_dropout", "recognition_dropout"):
            if not 0.0 <= getattr(self, name) < 1.0:
                raise UsageError(f"option {name}={getattr(self, name)}: must lie in [0, 1)")
        if not 0.0 <= self.typed_negatives <= 1.0:
            raise UsageError(f"option typed_negatives={self.typed_negatives}: must lie in [0, 1]")
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(value, (int, float)) and value < 0:
                raise UsageError(f"option {field.name}={value}: must not be negative")
        if self.learning_rate == 0:
            raise UsageError("option learning_rate=0: must be above 0")
        if self.folds == 1:
            raise UsageError("option folds=1: must be 0 or at least 2")
        moved = self.recognition_steps > 0 or self.pairs_reach_terms
        if self.world == "open" and moved and (self.folds or self.recognition == "bilinear"):
            raise UsageError("folds and bilinear recognition need recognition_steps=0 and pairs_reach_terms=false")

    @property
    def has_offset(self) -> bool:
        """Whether terms have vectors of their own in stages 2 and 3; in the closed world recall must not move."""
        return self.term_offset or self.world == "closed"

    @property
    def recall_moves(self) -> bool:
        """Whether υ or υ' change once the first epoch has begun."""
        if self.world == "closed":
            return False
        shared = self.recognition == "transe" and not self.has_offset
        return self.recall_steps > 0 or (shared and (self.pairs_reach_terms or self.recognition_steps > 0))

    def replace(self, **changes: Any) -> Config:
        """A copy with some options changed; an unknown name raises with the known ones."""
        known = {field.name for field in dataclasses.fields(self)}
        for name in changes:
            if name not in known:
                raise UsageError(f"unknown option {name}; known are {', '.join(sorted(known))}")
        return dataclasses.replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as in ``config.json``."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Config:
        """The configuration behind plain values."""
        return cls().replace(**values)

    @classmethod
    def parse(cls, base: Config, settings: list[str]) -> Config:
        """``base`` with settings such as ``dropout=0.3`` from a command line."""
        kinds = {field.name: type(getattr(base, field.name)) for field in dataclasses.fields(base)}
        changes: dict[str, Any] = {}
        for setting in settings:
            name, separator, text = setting.partition("=")
            if not separator:
                raise UsageError(f"--set {setting}: write option=value")
            if name not in kinds:
                raise UsageError(f"unknown option {name}; known are {', '.join(sorted(kinds))}")
            changes[name] = _parse(name, text, kinds[name])
        return base.replace(**changes)


def _parse(name: str, text: str, kind: type) -> Any:
    try:
        if kind is bool:
            return {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}[text.lower()]
        return kind(text)
    except (KeyError, ValueError):
        raise UsageError(f"option {name}={text}: expected a value like {kind.__name__}") from None


def describe() -> list[str]:
    """Every option with its default and what it does, as written down in :class:`Config`."""
    pattern = re.compile(r"^    (\w+): \w+ = (.+?)  # (.+)$", re.MULTILINE)
    return [f"{name}={default}  {text}" for name, default, text in pattern.findall(inspect.getsource(Config))]


PRESETS: dict[str, Config] = {
    # The paper's recipe to the letter; what it leaves open is as science pins it.
    "paper": Config(
        recognition="transe",
        folds=0,
        nearness=False,
        mask="target",
        typed_relations=False,
        known_facts=False,
        silent_unformed=False,
        informed_start=False,
        term_vectors=True,
        recall_features=False,
        pair_dimension=0,
        attention_layer=True,
        temperature=0.0,
        margin_clip=5.0,
        attention_dropout=0.0,
        warm_start="none",
        recall_batch=128,
        recall_rate=0.0,
        recall_steps=1,
        recognition_batch=128,
        recognition_rate=0.0,
        recognition_decay=0.0,
        offset_decay=0.0,
        recognition_dropout=0.0,
        recognition_steps=1,
        comprehensiveness=0.0,
        pairs_reach_terms=True,
        pair_batch=128,
        epochs=100,
        least_steps=0,
        learning_rate=1e-3,
        weight_decay=0.0,
        schedule="constant",
        margins=False,
        recall_loss="sum",
        typed_negatives=0.0,
        pretrain_recall=0,
        pretrain_recognition=0,
        refresh_every=1,
        optimizer="adam",
        clip=0.0,
    ),
    "default": Config(),
}


def preset(name: str) -> Config:
    """The configuration of a preset; an unknown name raises."""
    if name not in PRESETS:
        raise UsageError(f"unknown preset {name}; choose one of {', '.join(PRESETS)}")
    return PRESETS[name]

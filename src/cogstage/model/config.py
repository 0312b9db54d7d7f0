"""Every option of the default model and its training, with its default and what it does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from cogstage.choices import World
from cogstage.errors import UsageError
from cogstage.options import Options, option

WORLDS: tuple[str, ...] = get_args(World)


@dataclass(frozen=True)
class Config(Options):
    """What the default model is and how it is trained."""

    world: str = option("open", "open: reasons are known facts and recognised triples; closed: known facts only")
    dimension: int = option(128, "d, length of the term vectors of each kind")
    tower: int = option(128, "width of the head and tail towers")
    associations: int = option(32, "number of associations of the head, and of the tail")
    reasons: int = option(4, "largest number of reasons for, and of reasons against")
    folds: int = option(4, "number of folds for cross-fitting stage 3; 0 turns it off")

    ppmi_shift: float = option(0.0, "stage 1: subtracted from PPMI before negative values are set to 0")
    ppmi_smoothing: float = option(1.0, "stage 1: exponent of the context distribution; 1 is off")
    fact_weight: float = option(2.0, "stage 1: weight of training facts relative to PPMI in the vectors that use both")

    margin: float = option(1.0, "stage 2: τ, added to the contrast with other relations before the scores are joined")

    recognition_batch: int = option(256, "stage 2: facts per batch of L_r")
    fresh_negatives: int = option(4, "stage 2: negatives sampled per fact from the heads and tails of its relation")
    recognition_passes: int = option(18, "stage 2: passes over the training facts")
    recognition_rate: float = option(2e-3, "stage 2: learning rate")
    recognition_decay: float = option(0.05, "stage 2: decoupled weight decay")
    offset_decay: float = option(0.3, "stage 2: decoupled weight decay of the term offsets")
    recognition_dropout: float = option(0.5, "stage 2: dropout rate of the towers")

    pair_batch: int = option(256, "stage 3: pairs per batch of L_p")
    co_occurring: float = option(0.3, "stages 2 and 3: co-occurring pairs used as negatives, per fact")
    other_facts: float = option(0.15, "stage 3: facts of other relations used as negatives, per fact")
    decision_epochs: int = option(2, "stage 3: passes over the training pairs")
    decision_steps: int = option(400, "stage 3: smallest number of steps per relation; few pairs get more passes")
    decision_rate: float = option(2e-2, "stage 3: learning rate")

    def __post_init__(self) -> None:
        self.check_choice("world", WORLDS)
        positive = "dimension tower associations reasons recognition_batch pair_batch decision_epochs"
        self.check_ranges(positive, "recognition_dropout")
        if self.folds == 1:
            raise UsageError("option folds=1: must be 0 or at least 2")

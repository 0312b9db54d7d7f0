"""contraindicated@N: known contraindications among the first candidates that may treat a disorder."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cogstage.evaluation.populations import model_verdicts
from cogstage.knowledge.dataset import SPLITS, Dataset
from cogstage.rationale.verdict import Verdict
from cogstage.reporting import Table, figure_text
from cogstage.triples import TripleIndex, Triples

if TYPE_CHECKING:
    from cogstage.estimator import CogStage

TREATS, CONTRAINDICATED = "may_treat", "contraindicates"
JUDGED = 10  # times N candidates get a verdict; contradicted ones stand below the others


@dataclass(frozen=True)
class ContraindicatedFigures:
    """Means over disorders of the number of contraindicated drugs among the first N candidates."""

    n: int
    disorders: int
    by_log_odds: float
    """Candidates in the order of their log-odds of "may treat"."""
    after_verdict: float
    """Candidates that the verdict calls contradicted stand below the others."""
    held_out_by_log_odds: float
    """Counting only contraindications that the model does not know."""
    held_out_after_verdict: float
    chance: float
    """Expected number in a random order."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    def table(self) -> Table:
        """One row for all contraindications, one for those the model does not know."""
        rows = (
            ("all known", *map(figure_text, (self.by_log_odds, self.after_verdict, self.chance))),
            ("held out", *map(figure_text, (self.held_out_by_log_odds, self.held_out_after_verdict)), ""),
        )
        caption = f"contraindicated@{self.n}: contraindicated drugs among the first {self.n} candidates for a disorder"
        note = f"Mean over {self.disorders:,} disorders with a contraindication; known treatments are left out."
        return Table(caption, ("contraindications", "by log-odds", "after the verdict", "by chance"), rows, note=note)


def contraindicated_at(
    model: CogStage, data: Dataset, n: int = 10, disorders: int = 200, seed: int = 0
) -> ContraindicatedFigures | None:
    """Count known contraindications among the first ``n`` drugs that may treat a disorder; None without the relations.

    Disorders are tails of both relations, at most ``disorders`` of them. Candidates are the heads of training facts
    of "may treat" without the disorder's known treatments of any split.
    """
    if not {TREATS, CONTRAINDICATED} <= {*model.relations} & {*data.relations}:
        return None
    relations = len(data.relations)
    treats, against = data.relations.index(TREATS), data.relations.index(CONTRAINDICATED)
    facts = Triples.join([data.facts(split) for split in SPLITS])
    everything = TripleIndex(facts, relations, data.n_nodes)
    candidates = model.ends(TREATS, "head")
    tails = np.intersect1d(facts.tail[facts.relation == against], model.ends(TREATS, "tail"))
    if len(tails) > disorders:
        tails = np.sort(np.random.default_rng(seed).choice(tails, disorders, replace=False))
    counted: list[list[float]] = []
    for disorder in tails.tolist():
        known = everything.relations_of(candidates, np.full(len(candidates), disorder))
        drugs, wrong = candidates[~known[:, treats]], known[~known[:, treats], against]
        drugs, wrong = drugs[drugs != disorder], wrong[drugs != disorder]
        if not wrong.any():
            continue
        order = np.argsort(-model.logits(drugs, np.full(len(drugs), disorder), TREATS), kind="stable")[: JUDGED * n]
        first, wrong_first = drugs[order], wrong[order]
        ends = first, np.full(len(first), disorder)
        number = model.all_relations.index(CONTRAINDICATED)
        unknown = ~model.facts.contains(first, np.full(len(first), number), ends[1])
        code = model_verdicts(model, *ends)[:, model.relations.index(TREATS)]
        after = np.argsort(code == Verdict.CONTRADICTED, kind="stable")[:n]
        top = np.arange(min(n, len(first)))
        hits = [float((wrong_first & mask)[rows].sum()) for mask in (True, unknown) for rows in (top, after)]
        counted.append([*hits, n * float(wrong.mean())])
    if not counted:
        return None
    plain, verdict, held_out, held_out_verdict, chance = np.mean(counted, axis=0).tolist()
    return ContraindicatedFigures(n, len(counted), plain, verdict, held_out, held_out_verdict, chance)

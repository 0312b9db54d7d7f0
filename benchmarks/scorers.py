"""The baselines' scorers against PyKEEN's interactions: the same vectors, the same weights, equal scores.

A step scores a batch of pairs and takes the gradient of every weight, as training does. PyKEEN scores triples, so its
relation is given once for every pair, as its own training would.
"""

from __future__ import annotations

from typing import Any

from benchmarks.harness import add_ratios, installed, measured, need, parser, report, run_side, side_row

SCORERS = ("distmult", "rescal", "ntn")
DIMENSION, SLICES = 128, 4
SIDES = {"ours": "cogstage", "pykeen": "PyKEEN"}


def ours(pairs: int, steps: int) -> dict[str, Any]:
    """cogstage's modules, by scorer."""
    found = {}
    for scorer in SCORERS:
        module = _module(scorer)
        weights = [weight for name, weight in module.named_parameters() if name != "bias"]
        found[scorer] = _steps(module, weights, pairs, steps)
    return found


def pykeen(pairs: int, steps: int) -> dict[str, Any]:
    """PyKEEN's interactions with the same weights, by scorer."""
    return {scorer: _steps(*_interaction(scorer), pairs, steps) for scorer in SCORERS}


def _interaction(scorer: str) -> tuple[Any, list[Any]]:
    """What scores heads and tails, and the weights behind it."""
    from pykeen.nn.modules import DistMultInteraction, NTNInteraction, RESCALInteraction

    module = _module(scorer)
    if scorer == "ntn":
        weights = [module.bilinear, module.head, module.tail, module.shift, module.out]
        interaction: Any = NTNInteraction()
    else:
        weights = [module.relation]
        interaction = DistMultInteraction() if scorer == "distmult" else RESCALInteraction()

    def score(head: Any, tail: Any) -> Any:
        given = [weight.expand(len(head), *weight.shape) for weight in weights]
        return interaction(head, given[0] if len(given) == 1 else tuple(given), tail)

    return score, weights


def _module(scorer: str) -> Any:
    """The module with random weights."""
    import torch

    from cogstage.baselines.scorers.distmult import DistMultLogit
    from cogstage.baselines.scorers.ntn import NtnLogit
    from cogstage.baselines.scorers.rescal import RescalLogit

    kinds: dict[str, Any] = {
        "distmult": lambda: DistMultLogit(DIMENSION),
        "rescal": lambda: RescalLogit(DIMENSION),
        "ntn": lambda: NtnLogit(DIMENSION, SLICES),
    }
    torch.manual_seed(0)
    module = kinds[scorer]()
    for name, weight in module.named_parameters():
        if name != "bias":  # which PyKEEN has not, and stays zero
            torch.nn.init.normal_(weight, std=0.1)
    return module


def _steps(score: Any, weights: list[Any], pairs: int, steps: int) -> dict[str, Any]:
    """Time of ``steps`` steps, and the sum of the scores, which must be equal on both sides."""
    import torch

    torch.manual_seed(1)
    head, tail = torch.randn(pairs, DIMENSION), torch.randn(pairs, DIMENSION)

    def step() -> float:
        total = score(head, tail).sum()
        torch.autograd.grad(total, weights)
        return float(total.detach())

    checksum = step()  # what is set up once does not count
    with measured() as took:
        for _ in range(steps):
            step()
    return {**took, "checksum": checksum}


def main(argv: list[str] | None = None) -> None:
    """Every scorer on both sides."""
    options = parser(__doc__).parse_args(argv)
    need(installed("pykeen"), "needs PyKEEN: pip install 'cogstage[baselines]'")
    pairs, steps = (256, 10) if options.quick else (256, 400)
    size = {"pairs": pairs, "steps": steps}
    sides = {label: run_side(f"benchmarks.scorers:{name}", size) for name, label in SIDES.items()}
    rows: list[dict[str, Any]] = []
    equal = True
    for scorer in SCORERS:
        found = {label: side["result"][scorer] for label, side in sides.items()}
        alike = [
            {"scorer": scorer, **side_row(label, {**times, "peak_mb": sides[label]["peak_mb"]})}
            for label, times in found.items()
        ]
        add_ratios(alike, alike[-1])
        rows += alike
        first, second = (times["checksum"] for times in found.values())
        equal = equal and abs(first - second) <= 1e-4 * max(1.0, abs(second))
    notes = {"dimension": DIMENSION, **size, "peak MB": "of all three in one process", "equal scores": equal}
    report("scorers", rows, options.out, notes)
    if not equal:
        raise SystemExit("the two sides disagree")


if __name__ == "__main__":
    main()

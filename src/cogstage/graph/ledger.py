"""The ledger of releases of the same patients, and what they cost together.

**Private releases** add up. A release with Gaussian noise of variance σ² on m numbers is Rényi differentially private
with α·ρ at every order α, ρ = m/2σ², which holds for discrete noise too (Canonne, Kamath and Steinke, 2020); one with
Laplace noise is ε-private, so min(ε, α·ε²/2). Both add up over releases, each of which may depend on those before, and
give

    δ_noise(ε) = min over α of  exp((α - 1)·(R(α) - ε)) / (α - 1) · (1 - 1/α)^α,   R(α) = Σ of the releases

With probability p_i at most, release i shows a pair of one patient alone; otherwise, its outputs are those of noise on
shared pairs. So all releases together have δ = Σp_i + δ_noise(ε) where the patient was added, and δ_noise(ε + ln q),
q = Π(1 - p_i), where they were removed. Where it is less, the plain sum (Σε_i, Σδ_i) holds.

**Suppressed releases** do not add up: the difference between two of them (another threshold, another roll-up, another
period) can be the count of one patient. A ledger therefore has one, and refuses every other.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from cogstage.artefact import to_json, write_text
from cogstage.errors import CogstageError, UsageError
from cogstage.graph.mechanism import appearance, mechanism_for
from cogstage.graph.options import PrivacyOptions
from cogstage.locks import lock_folder

ORDERS = 1 + np.geomspace(1e-2, 1e6, 2000)  # α


@dataclass(frozen=True)
class Budget:
    """The most that all releases together may cost one patient."""

    epsilon: float
    delta: float

    @classmethod
    def parse(cls, text: str) -> Budget:
        """Read ``EPS,DELTA``."""
        try:
            epsilon, delta = map(float, text.split(","))
        except ValueError:
            epsilon, delta = 0.0, 0.0
        if not (0 < epsilon < math.inf and 0 < delta < 1):
            raise UsageError(f"`budget` must be EPS,DELTA, such as 3,1e-5, not {text}")
        return cls(epsilon, delta)


@dataclass(frozen=True)
class Entry:
    """One release; a private one has ``private``, a suppressed one the threshold ``below`` and the graph's hash."""

    out: str
    private: PrivacyOptions | None = None
    order: bool = False
    below: int = 0
    hash: str = ""

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return {key: value for key, value in asdict(self).items() if value}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Entry:
        """Read what :meth:`as_json` gives."""
        private = values.get("private")
        return cls(**{**values, "private": PrivacyOptions(**private) if private else None})


@dataclass(frozen=True)
class Ledger:
    """All releases of the same patients."""

    budget: Budget
    entries: tuple[Entry, ...] = ()

    def spent(self) -> float:
        """The ε of all private releases together, at the δ of the budget."""
        return spent_epsilon([(e.private, e.order) for e in self.entries if e.private is not None], self.budget.delta)

    def with_entry(self, entry: Entry) -> Ledger:
        """The ledger with one more release; raise if it must not be made."""
        if entry.hash and entry.hash in {each.hash for each in self.entries}:
            return self  # the same counts again reveal nothing new
        longer = replace(self, entries=(*self.entries, entry))
        if entry.private is None:
            other = next((each for each in self.entries if each.private is None), None)
            if other is not None:
                raise CogstageError(
                    f"{other.out} has suppressed counts of the same patients; the difference between two such releases "
                    "can reveal counts that both suppress"
                )
            return longer
        if (spent := longer.spent()) > self.budget.epsilon:
            before = f"{self.spent():.3g} of ε = {self.budget.epsilon:g} (δ = {self.budget.delta:g})"
            raise CogstageError(
                f"the releases so far used {before}; with this one, ε would be {spent:.3g}; nothing was released"
            )
        return longer


def spent_epsilon(releases: Sequence[tuple[PrivacyOptions, bool]], delta: float) -> float:
    """The ε of several releases of the same patients at ``delta``; each with or without the order in time."""
    if not releases:
        return 0.0
    divergence, appear = np.zeros(len(ORDERS)), 0.0
    for private, order in releases:
        mechanism, numbers = mechanism_for(private, order), (2 if order else 1) * private.pairs
        if private.noise == "gaussian":
            divergence += ORDERS * numbers / (2 * float(mechanism.spread))
            appear += appearance(private.pairs, mechanism)
        else:
            divergence += np.minimum(private.epsilon, ORDERS * private.epsilon**2 / 2)
            appear += private.delta
    sums = [sum(values) for values in zip(*((p.epsilon, p.delta) for p, _ in releases), strict=True)]
    plain = sums[0] if sums[1] <= delta * (1 + 1e-12) else math.inf
    return min(plain, _accounted(divergence, appear, delta))


def _accounted(divergence: np.ndarray, appear: float, delta: float) -> float:
    """The smallest ε with Σp + δ_noise(ε + ln q) ≤ δ; infinite if there is none."""
    left = delta - appear
    if left <= 0:
        return math.inf
    needed = divergence + np.log1p(-1 / ORDERS) - (math.log(left) + np.log(ORDERS)) / (ORDERS - 1)
    return max(0.0, float(needed.min())) - math.log1p(-appear)


def charge(path: Path, entry: Entry, budget: Budget | None) -> Ledger:
    """Add a release to a ledger file before it is made, or raise and leave the file as it is.

    The first release sets the ``budget``; a later one may leave it out, but not change it.
    """
    with lock_folder(path):
        ledger = read_ledger(path) if path.exists() else None
        if ledger is None:
            if budget is None and entry.private is not None:
                raise UsageError(f"{path} does not exist yet; set its `budget`, such as 3,1e-5")
            ledger = Ledger(budget or Budget(0.0, 0.0))
        if ledger.budget == Budget(0.0, 0.0) and budget is not None:
            ledger = replace(ledger, budget=budget)
        if budget is not None and budget != ledger.budget:
            has = f"{ledger.budget.epsilon:g},{ledger.budget.delta:g}"
            raise UsageError(f"{path} has the budget {has}; leave `budget` out, or edit the file if that is decided")
        ledger = ledger.with_entry(entry)
        about = {"kind": "ledger", "budget": asdict(ledger.budget), "releases": [e.as_json() for e in ledger.entries]}
        write_text(path, to_json(about), 0o600)
    return ledger


def read_ledger(path: Path) -> Ledger:
    """Read a ledger file."""
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
        if about["kind"] != "ledger":
            raise ValueError("kind")
        return Ledger(Budget(**about["budget"]), tuple(Entry.from_json(each) for each in about["releases"]))
    except (OSError, ValueError, KeyError, TypeError, UsageError) as error:
        raise CogstageError(f"{path} is not a ledger of releases ({error})") from None

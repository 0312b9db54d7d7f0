"""A linear mixed model beside the crossover's own test, as a sensitivity analysis. Needs statsmodels.

An answer is the sum of fixed effects of arm and period and of random effects of reviewer and pair. Both random effects
are crossed, so that the interval is for other reviewers and other pairs.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np

from cogstage.study.observation import Observation

NEEDS_STATSMODELS = "The mixed model needs statsmodels: pip install 'cogstage[study]'."
FEWEST = 30  # answers; fewer say nothing of two variances


@dataclass(frozen=True)
class MixedEffect:
    """A difference between two arms by the mixed model, with its Wald interval and p value."""

    difference: float
    low: float
    high: float
    p_value: float
    n: int  # answers


def has_statsmodels() -> bool:
    """Whether the mixed model can be fitted."""
    return find_spec("statsmodels") is not None


def mixed_effects(rows: Sequence[Observation], arms: Sequence[str]) -> dict[tuple[str, str], MixedEffect]:
    """The difference between each two arms; none without statsmodels, or if the model cannot be fitted."""
    if not has_statsmodels() or len(rows) < FEWEST or {row.arm for row in rows} != set(arms):
        return {}
    from scipy.stats import norm
    from statsmodels.regression.mixed_linear_model import MixedLM, VCSpec

    value = np.array([row.value for row in rows])
    periods = sorted({row.period for row in rows})
    fixed = [np.ones(len(rows))]
    fixed += [np.array([float(row.arm == arm) for row in rows]) for arm in arms[1:]]
    fixed += [np.array([float(row.period == period) for row in rows]) for period in periods[1:]]
    random = [_dummies([row.reviewer for row in rows]), _dummies([row.pair for row in rows])]
    names = ["reviewer", "pair"]
    variances = VCSpec(names, [[[str(n) for n in range(z.shape[1])]] for z in random], [[z] for z in random])
    model = MixedLM(value, np.stack(fixed, 1), groups=np.zeros(len(rows)), exog_re=None, exog_vc=variances)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a variance of zero is an answer, too
        try:
            fit = model.fit(reml=True)
        except (np.linalg.LinAlgError, ValueError):
            return {}
    covariance = np.asarray(fit.cov_params())
    made = {}
    for first in arms:
        for second in arms:
            weights = np.zeros(len(covariance))
            for arm, sign in ((first, 1.0), (second, -1.0)):
                if arm != arms[0]:
                    weights[arms.index(arm)] += sign
            difference = float(weights[: len(fit.fe_params)] @ np.asarray(fit.fe_params))
            error = math.sqrt(max(float(weights @ covariance @ weights), 0.0))
            if error > 0 and math.isfinite(error):
                p_value = float(2 * norm.sf(abs(difference) / error))
                reach = 1.959964 * error
                ends = difference - reach, difference + reach
                made[first, second] = MixedEffect(difference, *ends, p_value, len(rows))
    return made


def _dummies(names: Sequence[str]) -> np.ndarray:
    """One column per name."""
    distinct, number = np.unique(np.array(names), return_inverse=True)
    columns: np.ndarray = np.eye(len(distinct))[number]
    return columns

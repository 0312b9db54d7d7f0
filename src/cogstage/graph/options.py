"""Options of a graph build, with defaults."""

from __future__ import annotations

import datetime
import math
import re
import sys
from dataclasses import asdict, dataclass, field
from typing import Any, get_args

from cogstage.choices import Ambiguity, Content, Copies, Level, Noise, Per, Unit, Window, check_choice
from cogstage.errors import UsageError

WINDOWS = (1, 7, 30, 90, 180, 365)  # days; None is ever
ANY_LAG = 2**31  # days: more than lie between any two dates
MOST_NOISE = 1e12  # largest scale of noise; beyond it, nothing would be released and integers overflow
MOST_EXAMPLES = 100  # of a pair
SIZES = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


@dataclass(frozen=True)
class PrivacyOptions:
    """Options of a differentially private release, as ``private`` of :class:`BuildOptions`.

    Parameters
    ----------
    epsilon, delta
        Privacy budget for one patient (or one document, if there are no patients).
    pairs
        Largest number of pairs that one patient contributes.
    noise
        Distribution of the noise: "gaussian", or "laplace", which needs far more of it.

    Examples
    --------
    >>> cs.BuildOptions(private=cs.PrivacyOptions(epsilon=1, delta=1e-6, pairs=100)).private.pairs
    100
    """

    epsilon: float
    delta: float
    pairs: int
    noise: Noise = "gaussian"

    def __post_init__(self) -> None:
        check_choice("noise", self.noise, Noise)
        sound = math.isfinite(self.epsilon) and self.epsilon > 0 and self.pairs >= 1
        if not (sound and sys.float_info.min <= self.delta < 1 and self.pairs / self.epsilon < MOST_NOISE):
            raise UsageError(
                "`private` needs a finite EPS > 0, 0 < DELTA < 1 (no denormal number), M >= 1 "
                f"and M/EPS < {MOST_NOISE:.0e}, such as 1,1e-6,100"
            )

    @classmethod
    def parse(cls, text: str) -> PrivacyOptions:
        """Create options from text, as on the command line.

        Parameters
        ----------
        text
            ``EPS,DELTA,M``, such as ``1,1e-6,100``; ``1,1e-6,100,laplace`` for Laplace noise.

        Returns
        -------
        PrivacyOptions
            The options.

        Raises
        ------
        UsageError
            If the text has another form, or a value is out of range.
        """
        try:
            epsilon, delta, pairs, *noise = text.split(",")
            return cls(float(epsilon), float(delta), int(pairs), *noise)  # type: ignore[arg-type]
        except TypeError:
            raise UsageError(f"`private` must be EPS,DELTA,M or EPS,DELTA,M,laplace, not {text}") from None
        except ValueError:
            raise UsageError(f"`private` must be EPS,DELTA,M, such as 1,1e-6,100, not {text}") from None


@dataclass(frozen=True)
class BuildOptions:
    """Options of :func:`build_graph`. Equal options and inputs give identical graph files.

    Parameters
    ----------
    unit
        Unit within which terms co-occur; "auto" is patient-window if most documents are coded records of patients.
    window, per
        For patient-window: days per bin (None for no limit), and whether to count bins or patients.
    level
        What a node represents: a concept or a term.
    min_count
        Smallest number of units of a term; rarer terms are left out.
    suppress_below, private
        Smallest number of patients (or documents) of a term or edge, and :class:`PrivacyOptions` of a private release.
    pairs_per_patient
        Largest number of pairs that one patient contributes to exact counts, so that `graph release` can add noise
        later; None for no limit.
    order, lag
        Whether to count which of two terms came first, at most ``lag`` days apart (None for no limit).
    until
        Last day of the documents; later ones are left out.
    copies
        What to do with copied notes of a patient; "auto" drops them if there are notes of patients.
    keep_context
        Whether to count negated, family, hypothetical and historical mentions.
    content
        What to count in a document; "auto" counts text if there is a lexicon and a text, otherwise codes.
    ambiguity
        What to do with a term that has several concepts.
    variants, any_case
        Whether to match plural and hyphen variants, and abbreviations in any case.
    context_rules
        File with context rules, or the language of built-in rules ("de" or "es").
    corpus
        Description of the documents, shown with every model that is built on the graph.
    keep_examples, examples_of_patients
        Number of example documents per pair, and a confirmation that examples from patient records are allowed.
    format, reader
        Input format, and options of its reader.
    licences
        Sources and licences of the documents, for the release report.

    Examples
    --------
    >>> cs.BuildOptions(unit="patient-window", window=30, per="patient", suppress_below=11).lag_days is None
    True
    >>> cs.BuildOptions(min_count=0)
    Traceback (most recent call last):
    cogstage.errors.UsageError: `min_count` must be at least 1, not 0
    """

    unit: Unit = "auto"
    window: int | None = 1
    per: Per = "bin"
    level: Level = "concept"
    min_count: int = 1
    suppress_below: int = 0
    private: PrivacyOptions | None = None
    pairs_per_patient: int | None = None
    order: bool = False
    lag: int | None = 90
    until: datetime.date | None = None
    copies: Copies = "auto"
    keep_context: bool = False
    content: Content = "auto"
    ambiguity: Ambiguity = "first"
    variants: bool = False
    any_case: bool = False
    context_rules: str | None = None
    corpus: str | None = None
    keep_examples: int = 0
    examples_of_patients: bool = False
    format: str = "auto"
    reader: dict[str, Any] = field(default_factory=dict)
    licences: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, words in (
            ("unit", Unit), ("per", Per), ("level", Level), ("content", Content), ("ambiguity", Ambiguity),
            ("copies", Copies),
        ):  # fmt: skip
            check_choice(name, getattr(self, name), words)
        if self.per == "patient" and self.unit not in ("patient-window", "auto"):
            raise UsageError("`per` patient requires `unit` patient-window")
        if self.window is not None and self.window not in WINDOWS:
            raise UsageError(f"`window` must be one of {', '.join(map(str, WINDOWS))} days or None, not {self.window}")
        if self.lag is not None and self.lag < 0:
            raise UsageError(f"`lag` must be 0 days or more, not {self.lag}")
        if self.min_count < 1:
            raise UsageError(f"`min_count` must be at least 1, not {self.min_count}")
        if self.suppress_below < 0:
            raise UsageError(f"`suppress_below` must be at least 0, not {self.suppress_below}")
        self._check_examples()
        self._check_bound()

    def _check_bound(self) -> None:
        if self.private is not None and self.min_count > 1:
            raise UsageError("`min_count` uses exact counts and cannot be combined with `private`; drop one of them")
        if self.pairs_per_patient is None:
            return
        if self.pairs_per_patient < 1:
            raise UsageError(f"`pairs_per_patient` must be at least 1, not {self.pairs_per_patient}")
        if self.private is not None or self.min_count > 1 or self.suppress_below or self.keep_examples:
            raise UsageError(
                "`pairs_per_patient` prepares exact counts for noise that is added later; drop `private`, "
                "`min_count`, `suppress_below` and `keep_examples`"
            )

    def _check_examples(self) -> None:
        if not 0 <= self.keep_examples <= MOST_EXAMPLES:
            raise UsageError(f"`keep_examples` must be 0 to {MOST_EXAMPLES}, not {self.keep_examples}")
        if self.keep_examples and (self.private is not None or self.suppress_below):
            raise UsageError(
                "`keep_examples` stores text, which `private` and `suppress_below` are meant to hide; drop one of them"
            )
        if self.examples_of_patients and not self.keep_examples:
            raise UsageError("`examples_of_patients` requires `keep_examples`")

    @property
    def counts_groups(self) -> bool:
        """Whether the count of a pair is a number of patients."""
        return self.per == "patient" or self.bound is not None

    @property
    def bound(self) -> int | None:
        """Largest number of pairs of one patient; None for no limit."""
        return self.pairs_per_patient if self.private is None else self.private.pairs

    @property
    def lag_days(self) -> int | None:
        """The lag in days if order is counted, otherwise None."""
        return None if not self.order else ANY_LAG if self.lag is None else self.lag

    def as_meta(self) -> dict[str, Any]:
        """Return the options as plain values, as ``meta.json`` records them.

        Returns
        -------
        dict
            One entry per option, which a graph keeps as ``made_with``.
        """
        windowed = self.unit == "patient-window"
        return {
            "unit": self.unit,
            "window": ("ever" if self.window is None else f"{self.window}d") if windowed else None,
            "per": "patient" if self.counts_groups else self.per if windowed else self.unit,
            "level": self.level,
            "min_count": self.min_count,
            "suppress_below": self.suppress_below,
            "order": ("any" if self.lag is None else f"{self.lag}d") if self.order else None,
            "copies": self.copies,
            "until": None if self.until is None else self.until.isoformat(),
            "private": None if self.private is None else asdict(self.private),
            "pairs_per_patient": self.pairs_per_patient,
            "corpus": self.corpus,
            "examples": {"per_pair": self.keep_examples, "of_patients": self.examples_of_patients}
            if self.keep_examples
            else None,
            "context": "kept" if self.keep_context else "left out",
            "count": self.content,
            "ambiguity": self.ambiguity,
            "variants": self.variants,
            "any_case": self.any_case,
            "context_rules": self.context_rules,
            "format": self.format,
            "reader": dict(self.reader),
            "licences": list(self.licences),
        }


def parse_window(text: str) -> int | None:
    """Return the days of a window such as ``7d``; None for ``ever``."""
    if text == "ever":
        return None
    match = re.fullmatch(r"(\d+)d?", text)
    if match is None or int(match[1]) not in WINDOWS:
        raise UsageError(f"`window` must be one of {', '.join(get_args(Window))}, not {text}")
    return int(match[1])


def parse_lag(text: str) -> int | None:
    """Days of ``90d``; None for ``any``."""
    match = re.fullmatch(r"(\d{1,6})d?", text)
    if text != "any" and match is None:
        raise UsageError(f"`lag` must be a number of days, such as 90d, or any, not {text}")
    return None if match is None else int(match[1])


def parse_until(text: str) -> datetime.date:
    """The last day of a year (``1991``), of a month (``1991-06``), or a day (``1991-06-30``)."""
    match = re.fullmatch(r"(\d{4})(?:-(\d{1,2}))?(?:-(\d{1,2}))?", text)
    try:
        if match is None:
            raise ValueError
        year, month, day = int(match[1]), int(match[2] or 12), match[3]
        if day is not None:
            return datetime.date(year, month, int(day))
        within = datetime.date(year, month, 1) + datetime.timedelta(days=31)  # in the month that follows
        return within.replace(day=1) - datetime.timedelta(days=1)
    except ValueError:
        raise UsageError(f"`until` must be a year or a day, such as 1991 or 1991-06-30, not {text}") from None


def parse_size(text: str) -> int:
    """Bytes of ``4GB``, ``512M``, ``800000``."""
    match = re.fullmatch(r"\s*([\d.]+)\s*([KMGT]?)i?B?\s*", text, re.IGNORECASE)
    try:
        size = int(float(match[1]) * SIZES[match[2].upper()]) if match else 0
    except ValueError:
        size = 0
    if size < 1:
        raise UsageError(f"`memory` must be a size, such as 4GB or 512MB, not {text}")
    return size

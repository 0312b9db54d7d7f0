"""What a user should know of the terms that were matched in text: context, common words, languages."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cogstage.corpus.context import LANGUAGES, Context
from cogstage.corpus.language import language_named
from cogstage.graph.job import BuildJob

COMMON_SHOWN = 10  # common words that are named
_CONTEXT = {
    Context.NEGATED: "negated",
    Context.FAMILY: "family",
    Context.HYPOTHETICAL: "hypothetical",
    Context.HISTORICAL: "historical, such as those in sections on past history",
}


def notice_matching(job: BuildJob, left_out: Sequence[Sequence[int]], units: np.ndarray) -> None:
    """Report mentions left out by context, common English words that were counted as terms, and foreign languages.

    ``left_out`` has the mentions that each run left out, by category; ``units`` the number of units of each key.
    """
    if job.finder.lexicon is None:
        return
    _notice_languages(job)
    if job.options.private is not None:  # exact counts stay with a private build
        return
    counts = map(sum, zip(*left_out, strict=True))
    for category, count in zip(Context, counts, strict=False):
        if count:
            job.bad.notice(f"mentions left out as {_CONTEXT[category]} (`keep_context` counts them)", count)
    _notice_common_words(job, units)


def _notice_common_words(job: BuildJob, units: np.ndarray) -> None:
    lexicon = job.finder.lexicon
    assert lexicon is not None
    number = {key: rank for rank, key in enumerate(job.keys.keys)}
    counts: dict[str, int] = {}
    for term in lexicon.common_words:
        by_term = job.options.level == "term"
        key = lexicon.terms[term] if by_term else lexicon.concepts[lexicon.first_concept[term]]
        if key in number:  # rolled up otherwise
            counts[lexicon.terms[term]] = int(units[number[key]])
    for word, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:COMMON_SHOWN]:
        if count:
            job.bad.notice(f"{word!r}, a common English word, is a term of the lexicon; units that contain it", count)


def _notice_languages(job: BuildJob) -> None:
    """Report texts in another language than that of the context rules; rules in a file are for any language."""
    options = job.options
    own = language_named(options.context_rules or "en")
    if options.keep_context or own is None:
        return
    known = {language_named(code): code for code in LANGUAGES}
    for language, count in sorted(job.summary.languages.items(), key=lambda item: -item[1]):
        if language == own or 10 * count < job.summary.texts:
            continue
        advice = f"set `context_rules` to {known[language]}" if language in known else "there are no rules for it"
        share = f"{count / job.summary.texts:.0%} of {job.summary.texts:,} sampled texts look {language}"
        job.bad.notice(f"{share}, but negation and other context are judged by {own} rules; {advice}", 0)

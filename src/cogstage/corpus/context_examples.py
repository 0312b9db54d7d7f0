"""Examples of mentions that are not counted because of their context, to check the rules on your own text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from cogstage.corpus.annotate import Annotator
from cogstage.corpus.context import Context
from cogstage.corpus.records import Document

_AROUND = 80  # characters shown on each side of a mention


@dataclass(frozen=True, slots=True)
class ExcludedMention:
    """A mention that does not count: why, where, and the words around it."""

    category: str
    mention: str
    before: str
    after: str
    where: str


def left_out_examples(documents: Iterable[Document], annotator: Annotator, count: int = 5) -> Iterator[ExcludedMention]:
    """The first ``count`` mentions of each category that ``annotator`` leaves out; reading stops when all are there."""
    shown: Counter[Context] = Counter()
    for document in documents:
        for mention in annotator.annotate(document.text) if document.text else ():
            for category in Context:
                if not mention.context & category & annotator.leave_out or shown[category] >= count:
                    continue
                shown[category] += 1
                start, end = mention.start, mention.end
                yield ExcludedMention(
                    str(category.name).lower(),
                    document.text[start:end],
                    " ".join(document.text[max(0, start - _AROUND) : start].split()),
                    " ".join(document.text[end : end + _AROUND].split()),
                    document.where,
                )
        if all(shown[category] >= count for category in Context):
            return

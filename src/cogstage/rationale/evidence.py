"""The parts of a prediction record: terms, counts, associations, reasons, and what is said of each relation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from cogstage.graph.kept_examples import Example

Triple = tuple[str, str, str]  # keys of head and tail, name of the relation between
UNLIKELY = "considered unlikely"  # status of a reason that the recognition stage does not believe
VerdictWords = Literal["known fact", "likely", "contradicted", "unlikely", "does not apply"]


class RecordPart:
    """What all parts of the record share: a record that is read must not hold fields that are unknown."""

    __slots__ = ()
    __pydantic_config__: ClassVar = {"extra": "forbid"}


@dataclass(frozen=True, slots=True)
class Term(RecordPart):
    """A node of the graph.

    Attributes
    ----------
    key
        Identifier in the graph.
    name
        Name for people.
    type
        Type of the concept, such as drug or disorder; empty if unknown.
    """

    key: str
    name: str
    type: str = ""


@dataclass(frozen=True, slots=True)
class Order(RecordPart):
    """Number of patients with the head first, with the tail first, and with both on the same day.

    Attributes
    ----------
    head_first, tail_first, same_day
        Number of patients.
    """

    head_first: int
    tail_first: int
    same_day: int

    @property
    def patients(self) -> int:
        """Number of patients whose order is known."""
        return self.head_first + self.tail_first + self.same_day


@dataclass(frozen=True, slots=True)
class SignalValue(RecordPart):
    """A statistic with its 95 % interval.

    Attributes
    ----------
    value
        Estimate.
    low, high
        Ends of the interval.
    """

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Signal(RecordPart):
    """Disproportionality statistics of a drug and an event, computed from counts alone, without the model.

    Attributes
    ----------
    together, head, tail, total
        Number of units with both terms, with the head, with the tail, and in total.
    basis
        What a unit is, and how the counts were protected.
    ror
        Reporting odds ratio.
    prr
        Proportional reporting ratio.
    ic
        Information component; the lower end of its interval is IC025.
    """

    together: int
    head: int
    tail: int
    total: int
    basis: str
    ror: SignalValue
    prr: SignalValue
    ic: SignalValue


@dataclass(frozen=True, slots=True)
class PairEvidence(RecordPart):
    """What the counts of head and tail themselves add to the log-odds, without any other term.

    Attributes
    ----------
    count, ppmi
        How often the two terms co-occur; null if never.
    ppmi_share
        Summand of the logit because the two terms co-occur; never negative.
    similarity
        Cosine of their stage-1 vectors, at least 0.
    similarity_share
        Summand of the logit because the two terms co-occur with the same terms; never negative.
    """

    count: int | None
    ppmi: float | None
    ppmi_share: float
    similarity: float
    similarity_share: float

    @property
    def share(self) -> float:
        """Sum of the two summands."""
        return self.ppmi_share + self.similarity_share


@dataclass(frozen=True, slots=True)
class Association(RecordPart):
    """Why a term replaces one end of the question: how similar it is, and how often the two co-occur.

    Attributes
    ----------
    similarity
        Default model: cosine in [-1, 1]; published model: p(association | target).
    weight
        Weight among the associations of that end; the weights sum to 1.
    rank
        Rank by similarity; 1 is the most similar.
    count, ppmi
        How often the two terms co-occur; null if never.
    """

    similarity: float
    weight: float
    rank: int
    count: int | None
    ppmi: float | None


@dataclass(frozen=True, slots=True)
class Reason(RecordPart):
    """One assumption (head, relation, tail) with its share in the decision.

    Attributes
    ----------
    head, relation, tail
        The triple.
    share
        Signed summand of the logit.
    effect
        Change of the logit if the triple were not recognised and the next reason took its place.
    relation_probability
        Probability of the triple according to the recognition stage; 1 for a known fact.
    known_fact
        Whether the triple is a training fact; otherwise it is an assumption.
    types_fit
        Whether the relation usually joins terms of these types; null if types are unknown.
    count, ppmi
        How often the two terms of the triple co-occur; null if never.
    head_association, tail_association
        Why the term replaces that end of the question; null for the end that is unchanged.
    order
        Order in time of the two terms of the triple; null if unknown.
    examples
        Documents that mention both terms, if the graph has examples.

    Examples
    --------
    >>> prediction = cs.CogStage.load("model").predict("Drug number 4", "Disorder number 5", "may_treat")
    >>> reason = prediction.reasons[0]
    >>> len(reason.triple), reason.known_fact or 0 <= reason.relation_probability <= 1
    (3, True)
    """

    head: Term
    relation: str
    tail: Term
    share: float
    effect: float
    relation_probability: float
    known_fact: bool
    types_fit: bool | None
    count: int | None
    ppmi: float | None
    head_association: Association | None
    tail_association: Association | None
    order: Order | None = None
    examples: tuple[Example, ...] = ()

    @property
    def recognised(self) -> bool:
        """Whether the triple is a known fact or has a probability of at least 0.5; others can count against."""
        return self.known_fact or self.relation_probability >= 0.5

    @property
    def status(self) -> str:
        """ "known fact", "assumed" or "considered unlikely"."""
        if self.known_fact:
            return "known fact"
        return "assumed" if self.recognised else UNLIKELY

    @property
    def triple(self) -> Triple:
        """Key of the head, relation, and key of the tail, for :meth:`Prediction.without` and corrections."""
        return self.head.key, self.relation, self.tail.key


@dataclass(frozen=True, slots=True)
class Provenance(RecordPart):
    """Model, graph and version behind a prediction.

    Attributes
    ----------
    model
        Hash of the weights of the model.
    graph
        Hash of the graph.
    version
        Version of cogstage.
    world
        "open" or "closed".
    privacy
        How the counts are protected.
    """

    model: str
    graph: str
    version: str
    world: str = "open"
    privacy: str = "none"


@dataclass(frozen=True, slots=True)
class ProfileEntry(RecordPart):
    """What is said of one relation of the pair, given all relations of the model.

    Attributes
    ----------
    relation
        The relation.
    logit
        Calibrated log-odds at the base rate of the record.
    probability
        What the model alone gives the relation, σ(logit).
    known_fact
        Whether the triple is a training fact, or a reader marked it right.
    types_fit
        Whether the relation joins terms of these types; null if types are unknown.
    marked_wrong
        Whether a reader marked the triple wrong.
    verdict
        "known fact", "likely", "contradicted", "unlikely" or "does not apply".
    contradicted_by
        The opposite relation that is known or more likely; null unless the verdict is "contradicted".
    """

    relation: str
    logit: float
    probability: float
    known_fact: bool
    types_fit: bool | None
    marked_wrong: bool
    verdict: VerdictWords
    contradicted_by: str | None = None

    @property
    def holds(self) -> bool:
        """Whether the verdict is "known fact" or "likely"."""
        return self.verdict in ("known fact", "likely")


@dataclass(frozen=True, slots=True)
class Alternative(RecordPart):
    """A question that applies, offered instead of one that does not.

    Attributes
    ----------
    head, relation, tail
        The question.
    """

    head: Term
    relation: str
    tail: Term

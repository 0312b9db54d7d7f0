"""The geometry of a prediction's picture: the question's two terms, the terms between them, and the sum below.

``picture.py`` turns it into SVG or PNG. Relations have a colour and are written on their line; known facts are solid
lines, assumptions dashed, triples considered unlikely dash-dotted, similarity dotted: all can be read without colour.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import hypot

from cogstage.rationale.record import Association, Prediction, Reason, Term
from cogstage.rationale.wording import in_words, opposes, status_in_words, steps
from cogstage.relations import is_inverse, phrase, relation

WIDTH = 1100.0
BOX_WIDTH, LINE_HEIGHT, GAP = 210.0, 16.0, 18.0
GRID = (10.0, 250.0, 640.0, 880.0)  # head, its associations, the tail's associations, tail
TOP, ROW = 76.0, 26.0
GREY, INK, FOR, AGAINST = "#767f88", "#17212b", "#1a6fb5", "#c2560c"
LETTER, SMALLEST = 13.0, 9.0  # size of the letters in a box
DISCLAIMER = "A prediction from co-occurrence counts by cogstage: a hypothesis of a research tool, not medical advice."
ASSUMED, UNLIKELY, LIKE = (7.0, 4.0), (12.0, 3.0, 1.5, 3.0), (1.5, 4.0)  # dash patterns
SPOTS = (0.5, 0.38, 0.62, 0.28, 0.72, 0.2, 0.8)  # points along a line, as shares of it, for its number, the best first


@dataclass(frozen=True)
class Shape:
    """The measures of a picture: one for screens and paper, one for phones."""

    width: float
    box: float  # width of a box
    columns: tuple[float, float, float]  # left edges: head, terms between, tail
    letters: int  # of a name in one line of a box
    bold_letters: int


WIDE = Shape(WIDTH, BOX_WIDTH, (10.0, 445.0, 880.0), 28, 24)
NARROW = Shape(372.0, 92.0, (2.0, 140.0, 278.0), 12, 10)


@dataclass(frozen=True)
class Box:
    """A term, centred at ``y``. ``target`` boxes are the two terms of the question."""

    x: float
    y: float
    width: float
    height: float
    lines: tuple[str, ...]
    title: str
    key: str
    target: bool = False
    size: float = 13.0  # of the letters


@dataclass(frozen=True)
class Curve:
    """A line from (x1, y1) to (x2, y2), bent to leave and arrive level; ``arrow`` puts a head on its end."""

    x1: float
    y1: float
    x2: float
    y2: float
    colour: str
    width: float
    dash: tuple[float, ...] = ()
    arrow: bool = False
    title: str = ""
    reason: int = 0  # its number; 0 for the legend


@dataclass(frozen=True)
class Badge:
    """The number of a reason, as in the table beside the picture: filled for a known fact, hollow for an assumption."""

    x: float
    y: float
    text: str
    colour: str
    filled: bool
    reason: int


@dataclass(frozen=True)
class Label:
    """Text at a position of the picture."""

    x: float
    y: float
    text: str
    size: float = 13.0
    anchor: str = "start"
    bold: bool = False
    reason: int = 0


@dataclass(frozen=True)
class SumBar:
    """A step of the sum, from one value to the next."""

    x: float
    y: float
    width: float
    height: float
    colour: str
    title: str
    reason: int = 0


@dataclass
class Layout:
    """All shapes of one picture, in the order in which they are drawn."""

    height: float
    title: str
    top: float = 0.0  # upper edge
    shape: Shape = WIDE
    curves: list[Curve] = field(default_factory=list)
    boxes: list[Box] = field(default_factory=list)
    badges: list[Badge] = field(default_factory=list)
    bars: list[SumBar] = field(default_factory=list)
    labels: list[Label] = field(default_factory=list)


def bridged(prediction: Prediction) -> bool:
    """Whether every reason keeps one end of the question, so that three columns hold them all."""
    return all((r.head_association is None) != (r.tail_association is None) for r in prediction.reasons)


def lay_out(prediction: Prediction, most: int = 15, whole: bool = True, shape: Shape = WIDE) -> Layout:
    """Arrange the strongest ``most`` reasons of a prediction; ``whole`` adds a heading and the sum, to a wide one."""
    shown = prediction.top(most)
    reasons = shown.reasons_for + shown.reasons_against
    layout = Layout(0.0, shown.statement, 0.0 if whole else TOP - 30, shape)
    for number, line in enumerate(textwrap.wrap(layout.title, 110)[:2] if whole else ()):
        layout.labels.append(Label(WIDTH / 2, 24 + 20 * number, line, 17, "middle", bold=True))
    bottom = (_bridge if bridged(shown) else _grid)(layout, shown, reasons)
    bottom = _legend(layout, reasons, bottom + 28)
    layout.height = (_sum(layout, shown, bottom + 34) if whole else bottom) + 14
    if whole:
        layout.labels.append(Label(20, layout.height + 6, DISCLAIMER, 11))
        layout.height += 16
    return layout


def _bridge(layout: Layout, p: Prediction, reasons: Sequence[Reason]) -> float:
    """Three columns: each reason joins one term of the question to a term that is like the other."""
    between = _unique(r.tail if r.head_association is None else r.head for r in reasons)
    shape = layout.shape
    y, bottom = _column(layout, shape.columns[1], between, "similar terms")
    middle = (TOP + bottom) / 2
    for x, term in ((shape.columns[0], p.head), (shape.columns[2], p.tail)):
        layout.boxes.append(_box(x, middle, term, shape, target=True))
    strongest = max((abs(r.share) for r in reasons), default=0.0) or 1.0
    left = (shape.columns[0] + shape.box, shape.columns[1])
    right = (shape.columns[1] + shape.box, shape.columns[2])
    ends = _ports([middle + (y[_own(r).key] - middle) * 1e-3 * n for n, r in enumerate(reasons, 1)], middle)
    stacked: dict[str, int] = {}
    for number, (reason, end) in enumerate(zip(reasons, ends, strict=True), start=1):
        own = _own(reason)
        height = y[own.key] + _next_port(stacked, own.key)
        outer_left = (left[0], end, left[1], height)
        outer_right = (right[0], height, right[1], end)
        triple, like = (outer_left, outer_right) if reason.head_association is None else (outer_right, outer_left)
        association = reason.tail_association or reason.head_association
        assert association is not None
        target = p.tail if reason.head_association is None else p.head
        layout.curves.append(_similarity(like, own, target, association, number))
        _relation(layout, triple, reason, p, number, strongest)
    return max(bottom, middle + max((box.height for box in layout.boxes), default=0) / 2)


def _own(reason: Reason) -> Term:
    """The end of a bridged reason that is not the question's."""
    return reason.tail if reason.head_association is None else reason.head


def _grid(layout: Layout, p: Prediction, reasons: Sequence[Reason]) -> float:
    """Four columns: triples between associations of the head and associations of the tail (the published model)."""
    heads, tails = _unique(r.head for r in reasons), _unique(r.tail for r in reasons)
    head_y, one = _column(layout, GRID[1], heads, f"like {_short(p.head.name)}")
    tail_y, other = _column(layout, GRID[2], tails, f"like {_short(p.tail.name)}")
    bottom = max(one, other)
    middle = (TOP + bottom) / 2
    for x, term in ((GRID[0], p.head), (GRID[3], p.tail)):
        layout.boxes.append(_box(x, middle, term, WIDE, target=True))
    strongest = max((abs(r.share) for r in reasons), default=0.0) or 1.0
    for number, reason in enumerate(reasons, start=1):
        triple = (GRID[1] + BOX_WIDTH, head_y[reason.head.key], GRID[2], tail_y[reason.tail.key])
        for association, own, target, line in (
            (reason.head_association, reason.head, p.head, (GRID[0] + BOX_WIDTH, middle, GRID[1], triple[1])),
            (reason.tail_association, reason.tail, p.tail, (GRID[2] + BOX_WIDTH, triple[3], GRID[3], middle)),
        ):
            if association is not None:
                layout.curves.append(_similarity(line, own, target, association, number))
        _relation(layout, triple, reason, p, number, strongest)
    return bottom


def _relation(
    layout: Layout,
    line: tuple[float, float, float, float],
    reason: Reason,
    p: Prediction,
    number: int,
    strongest: float,
) -> None:
    """A triple: width by share, colour by relation, dashed if assumed, arrow from subject to object, number on it."""
    x1, y1, x2, y2 = line
    colour = relation(reason.relation).colour
    side = "for" if reason.share > 0 else "against"
    title = f"{number}. {in_words(reason)} ({status_in_words(reason)}): {reason.share:+.3f} {side}"
    if opposes(reason, p):
        title += "; this relation contradicts the one in question"
    width = 1.4 + 4.6 * abs(reason.share) / strongest
    ends = (x2, y2, x1, y1) if is_inverse(reason.relation) else line
    dash = () if reason.known_fact else ASSUMED if reason.recognised else UNLIKELY
    layout.curves.append(Curve(*ends, colour, width, dash, True, title, number))
    spots = [_along(x1, y1, x2, y2, share) for share in SPOTS]
    x, y = _free(layout.badges, spots)
    layout.badges.append(Badge(x, y, str(number), FOR if reason.share > 0 else AGAINST, reason.known_fact, number))


def _similarity(
    line: tuple[float, float, float, float], own: Term, target: Term, why: Association, number: int
) -> Curve:
    together = "never occur together" if why.count is None else f"occur together {why.count:,}×"
    title = f"{own.name} is similar to {target.name}: {why.similarity:.2f}, rank {why.rank}; {together}"
    return Curve(*line, GREY, 1.6, LIKE, title=title, reason=number)


def _column(layout: Layout, x: float, terms: Sequence[Term], heading: str) -> tuple[dict[str, float], float]:
    """Boxes below each other; the centres by key, and the lower edge."""
    shape = layout.shape
    layout.labels.append(Label(x + shape.box / 2, TOP - 12, heading, 12, "middle"))
    y, below = {}, TOP
    for term in terms:
        box = _box(x, 0.0, term, shape)
        y[term.key] = below + box.height / 2
        layout.boxes.append(_box(x, y[term.key], term, shape))
        below += box.height + GAP
    return y, max(below, TOP + 60)


def _box(x: float, y: float, term: Term, shape: Shape, target: bool = False) -> Box:
    letters = shape.bold_letters if target else shape.letters
    longest = max(map(len, term.name.split()), default=0)
    size = max(SMALLEST, LETTER * min(1.0, letters / max(longest, 1)))  # smaller rather than broken within a word
    lines = tuple(textwrap.wrap(term.name, int(letters * LETTER / size)) or [term.key])
    title = f"{term.name} ({term.type})" if term.type else term.name
    return Box(x, y, shape.box, LINE_HEIGHT * len(lines) + 16, lines, title, term.key, target, size)


def _ports(wanted: Sequence[float], centre: float) -> list[float]:
    """Where lines meet the box of the question: spread over its side in the order of their other ends."""
    order = sorted(range(len(wanted)), key=lambda place: wanted[place])
    step = min(4.0, 24.0 / max(len(wanted), 1))
    heights = [centre] * len(wanted)
    for rank, place in enumerate(order):
        heights[place] = centre + step * (rank - (len(wanted) - 1) / 2)
    return heights


def _next_port(stacked: dict[str, int], key: str) -> float:
    """A little above or below the centre for each further line at one box."""
    number = stacked[key] = stacked.get(key, -1) + 1
    return (number + 1) // 2 * 7.0 * (1 if number % 2 else -1)


def _free(badges: Sequence[Badge], spots: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """The first spot that is clear of other numbers, or the clearest."""

    def clearance(spot: tuple[float, float]) -> float:
        return min((hypot(spot[0] - b.x, spot[1] - b.y) for b in badges), default=99.0)

    return next((spot for spot in spots if clearance(spot) >= 22.0), max(spots, key=clearance))


def _along(x1: float, y1: float, x2: float, y2: float, share: float) -> tuple[float, float]:
    """The point at ``share`` of the cubic that leaves and arrives level."""
    bend = (x2 - x1) / 2
    a, b, c, d = (1 - share) ** 3, 3 * share * (1 - share) ** 2, 3 * share**2 * (1 - share), share**3
    return a * x1 + b * (x1 + bend) + c * (x2 - bend) + d * x2, (a + b) * y1 + (c + d) * y2


def _legend(layout: Layout, reasons: Sequence[Reason], y: float) -> float:
    entries: list[tuple[str, str, tuple[float, ...]]] = [
        (phrase(name), relation(name).colour, ()) for name in dict.fromkeys(_base(r.relation) for r in reasons)
    ]
    statuses: tuple[tuple[str, tuple[float, ...], bool], ...] = (
        ("known fact", (), any(r.known_fact for r in reasons)),
        ("assumed", ASSUMED, any(r.status == "assumed" for r in reasons)),
        ("considered unlikely", UNLIKELY, any(not r.recognised for r in reasons)),
        ("is similar to", LIKE, bool(reasons)),
    )
    entries += [(words, GREY, dash) for words, dash, shown in statuses if shown]
    x = 20.0
    for words, colour, dash in entries:
        width = 64 + 7.2 * len(words)
        if x + width > layout.shape.width - 10 and x > 20.0:
            x, y = 20.0, y + 22
        layout.curves.append(Curve(x, y, x + 40, y, colour, 3.0, tuple(dash), words not in ("is similar to",), words))
        layout.labels.append(Label(x + 48, y + 4, words))
        x += width
    return _circles(layout, reasons, x, y)


def _circles(layout: Layout, reasons: Sequence[Reason], x: float, y: float) -> float:
    """What the colour and filling of the numbered circles say."""
    circles = (
        ("reason for", FOR, True, any(r.share > 0 for r in reasons)),
        ("reason against", AGAINST, True, any(r.share < 0 for r in reasons)),
        ("not a known fact", GREY, False, any(not r.known_fact for r in reasons)),
    )
    for words, colour, filled, shown in circles:
        width = 44 + 7.2 * len(words)
        if shown and x + width > layout.shape.width - 10 and x > 20.0:
            x, y = 20.0, y + 24
        if shown:
            layout.badges.append(Badge(x + 10, y, "1", colour, filled, 0))
            layout.labels.append(Label(x + 26, y + 4, words))
            x += width
    return y


def _sum(layout: Layout, p: Prediction, y: float) -> float:
    """The sum as a waterfall: each bar begins where the one above ends; the last one is the answer."""
    if p.verdict == "does not apply":
        return y
    layout.labels.append(Label(20, y, "How the answer adds up (log-odds)", 14, bold=True))
    done = steps(p)
    sums = [0.0, *(step.before + step.share for step in done)]
    low, high = min(sums), max(sums)
    left, width = 620.0, 380.0
    scale = width / ((high - low) or 1.0)
    y += 14
    for step in done:
        words = step.words if step.reason is None else f"{step.number}. {step.words} ({status_in_words(step.reason)})"
        lines = textwrap.wrap(words, 80)
        for number, line in enumerate(lines):
            layout.labels.append(Label(20, y + 17 + LINE_HEIGHT * number, line, reason=step.number))
        start, end = sorted((step.before, step.before + step.share))
        colour = GREY if step.reason is None else FOR if step.share > 0 else AGAINST
        x = left + (start - low) * scale
        layout.bars.append(
            SumBar(x, y + 5, max(1.5, (end - start) * scale), 16, colour, f"{step.share:+.3f}", step.number)
        )
        layout.labels.append(Label(WIDTH - 12, y + 17, f"{step.share:+.3f}", 13, "end", reason=step.number))
        y += ROW + LINE_HEIGHT * (len(lines) - 1)
    start, end = sorted((0.0, p.logit))
    layout.labels.append(Label(20, y + 17, f"Sum: the answer, probability {p.probability:.3f}", bold=True))
    layout.bars.append(
        SumBar(left + (start - low) * scale, y + 5, max(1.5, (end - start) * scale), 16, INK, f"{p.logit:+.3f}")
    )
    layout.labels.append(Label(WIDTH - 12, y + 17, f"{p.logit:+.3f}", 13, "end", bold=True))
    return y + ROW


def _base(name: str) -> str:
    return relation(name).name


def _short(name: str) -> str:
    return name if len(name) <= 24 else name[:23] + "…"


def _unique(terms: Iterable[Term]) -> list[Term]:
    return list({term.key: term for term in terms}.values())

"""Where the parts of a rationale picture stand: head, its associations, relations, the tail's associations, tail.

Pure geometry; ``picture.py`` turns it into SVG or PNG. Relations are told apart by colour *and* dash pattern, so that
the picture can be read without colour vision and in print.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import hypot

from cogstage.rationale.record import Association, Prediction, Reason, Term
from cogstage.relations import RELATIONS, inverse, phrase
from cogstage.relations import relation as about

WIDTH = 1100.0
BOX_WIDTH, BOX_HEIGHT, ROW = 190.0, 40.0, 54.0
COLUMNS = (10.0, 255.0, 655.0, 900.0)  # left edges of: head, its associations, the tail's associations, tail
TOP, LEGEND = 64.0, 66.0
BADGE_PLACES = (0.5, 0.36, 0.64, 0.24, 0.76, 0.14, 0.86)  # shares of a line's course, the best first
GREY, INK = "#7a7a7a", "#1c1c1c"

# The Okabe-Ito colours, which stay apart under the common colour vision deficiencies, each with a dash of its own.
STYLES = {name: (about(name).colour, about(name).dash) for name in RELATIONS}
OTHER_STYLE = (about("").colour, about("").dash)


@dataclass(frozen=True)
class Box:
    """A term. ``target`` boxes are the two terms the prediction is about."""

    x: float
    y: float
    lines: tuple[str, ...]
    title: str
    target: bool = False


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


@dataclass(frozen=True)
class Badge:
    """The rank of a rationale, as in the table beside the picture."""

    x: float
    y: float
    text: str
    colour: str


@dataclass(frozen=True)
class Label:
    """Free text: heading and legend."""

    x: float
    y: float
    text: str
    size: float = 13.0
    middle: bool = False


@dataclass
class Layout:
    """All shapes of one picture, in the order in which they are drawn."""

    height: float
    title: str
    curves: list[Curve] = field(default_factory=list)
    boxes: list[Box] = field(default_factory=list)
    badges: list[Badge] = field(default_factory=list)
    labels: list[Label] = field(default_factory=list)


def style_of(relation: str) -> tuple[str, tuple[float, ...]]:
    """Colour and dash of a relation; an inverse looks like its relation, the arrow tells the direction."""
    base = relation if relation in STYLES else inverse(relation)
    return STYLES.get(base, OTHER_STYLE)


def lay_out(prediction: Prediction, most: int = 15) -> Layout:
    """Place the strongest ``most`` rationales of a prediction."""
    rationales = prediction.reasons[:most]
    heads = _unique([r.head for r in rationales])
    tails = _by_neighbours(_unique([r.tail for r in rationales]), heads, rationales)
    rows = max(len(heads), len(tails), 1)
    bottom = TOP + rows * ROW
    sentence = f"{prediction.head.name} {phrase(prediction.relation)} {prediction.tail.name}"
    layout = Layout(bottom + LEGEND, f"{sentence}: probability {prediction.probability:.2f}")
    layout.labels.append(Label(WIDTH / 2, 24, layout.title, 17, middle=True))
    for x, text in zip(COLUMNS, ("head", "like the head", "like the tail", "tail"), strict=True):
        layout.labels.append(Label(x + BOX_WIDTH / 2, 50, text, 12, middle=True))

    middle = TOP + rows * ROW / 2
    head_y = _spread(heads, rows)
    tail_y = _spread(tails, rows)
    layout.boxes.append(_box(COLUMNS[0], middle, prediction.head, target=True))
    layout.boxes.append(_box(COLUMNS[3], middle, prediction.tail, target=True))
    recalls = {("head", r.head.key): r.head_association for r in rationales}
    recalls |= {("tail", r.tail.key): r.tail_association for r in rationales}
    strongest = max((recall.weight for recall in recalls.values() if recall is not None), default=0.0)
    for term in heads:
        recall = recalls["head", term.key]
        layout.boxes.append(_box(COLUMNS[1], head_y[term.key], term))
        layout.curves.append(
            _recall_curve(COLUMNS[0] + BOX_WIDTH, middle, COLUMNS[1], head_y[term.key], term, recall, strongest)
        )
    for term in tails:
        recall = recalls["tail", term.key]
        layout.boxes.append(_box(COLUMNS[2], tail_y[term.key], term))
        layout.curves.append(
            _recall_curve(COLUMNS[3], middle, COLUMNS[2] + BOX_WIDTH, tail_y[term.key], term, recall, strongest)
        )
    _relations(layout, rationales, head_y, tail_y)
    _legend(layout, [r.relation for r in rationales], bottom + 26)
    return layout


def _relations(
    layout: Layout, rationales: Sequence[Reason], head_y: dict[str, float], tail_y: dict[str, float]
) -> None:
    """The assumptions themselves: width by score, colour and dash by relation, arrow from subject to object."""
    strongest = max((abs(r.share) for r in rationales), default=0.0)
    left, right = COLUMNS[1] + BOX_WIDTH, COLUMNS[2]
    starts = _ports([(r.head.key, tail_y[r.tail.key]) for r in rationales], head_y)
    ends = _ports([(r.tail.key, head_y[r.head.key]) for r in rationales], tail_y)
    for rank, (rationale, y1, y2) in enumerate(zip(rationales, starts, ends, strict=True), start=1):
        colour, dash = style_of(rationale.relation)
        width = 1.2 + 5.0 * (abs(rationale.share) / strongest if strongest > 0 else 0.0)
        words = f"{rationale.head.name} {phrase(rationale.relation)} {rationale.tail.name}"
        forward = rationale.relation in STYLES or inverse(rationale.relation) not in STYLES
        course = (left, y1, right, y2) if forward else (right, y2, left, y1)
        layout.curves.append(Curve(*course, colour, width, dash, True, f"{rank}. {words} ({rationale.share:+.3f})"))
        x, y = _free_place(layout.badges, [_along(left, y1, right, y2, share) for share in BADGE_PLACES])
        layout.badges.append(Badge(x, y, str(rank), colour))


def _ports(lines: Sequence[tuple[str, float]], centres: dict[str, float]) -> list[float]:
    """Where each line meets its box: lines of one box are spread over its side in the order of their other ends."""
    heights = [0.0] * len(lines)
    for key, centre in centres.items():
        mine = sorted((other, number) for number, (box, other) in enumerate(lines) if box == key)
        step = min(9.0, (BOX_HEIGHT - 10) / max(len(mine), 1))
        for place, (_, number) in enumerate(mine):
            heights[number] = centre + step * (place - (len(mine) - 1) / 2)
    return heights


def _free_place(badges: Sequence[Badge], places: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """The place that is farthest from the badges already there, the first that is far enough winning."""

    def clearance(place: tuple[float, float]) -> float:
        return min((hypot(place[0] - b.x, place[1] - b.y) for b in badges), default=99.0)

    return next((place for place in places if clearance(place) >= 22.0), max(places, key=clearance))


def _along(x1: float, y1: float, x2: float, y2: float, share: float) -> tuple[float, float]:
    """The point at ``share`` of the cubic that leaves and arrives level."""
    bend = (x2 - x1) / 2
    a, b, c, d = (1 - share) ** 3, 3 * share * (1 - share) ** 2, 3 * share**2 * (1 - share), share**3
    return a * x1 + b * (x1 + bend) + c * (x2 - bend) + d * x2, (a + b) * y1 + (c + d) * y2


def _recall_curve(
    x1: float, y1: float, x2: float, y2: float, term: Term, recall: Association | None, strongest: float
) -> Curve:
    if recall is None:
        return Curve(x1, y1, x2, y2, GREY, 3.8, title=f"{term.name}: the term in question itself")
    width = 0.8 + 3.0 * (recall.weight / strongest if strongest > 0 else 0.0)
    together = "never counted together" if recall.count is None else f"counted together {recall.count:,} times"
    title = f"{term.name}: likeness {recall.likeness:.2f} (rank {recall.rank}), {together}"
    return Curve(x1, y1, x2, y2, GREY, width, title=title)


def _box(x: float, y: float, term: Term, target: bool = False) -> Box:
    lines = textwrap.wrap(term.name, 26, max_lines=2, placeholder=" …") or [term.key]
    return Box(x, y, tuple(lines), f"{term.name} ({term.type})" if term.type else term.name, target)


def _legend(layout: Layout, relations: Sequence[str], y: float) -> None:
    shown = _unique_names(relations)
    x = 20.0
    for base in shown:
        colour, dash = style_of(base)
        layout.curves.append(Curve(x, y, x + 46, y, colour, 3.0, dash, True, phrase(base)))
        layout.labels.append(Label(x + 54, y + 4, phrase(base)))
        x += 74 + 7.4 * len(phrase(base))
    note = "grey lines: terms that are like each other; numbers: rank of the reason; wider means stronger"
    layout.labels.append(Label(20, y + 28, note, 12))


def _unique_names(relations: Sequence[str]) -> list[str]:
    bases = {relation if relation in STYLES else inverse(relation) for relation in relations}
    order = {relation: place for place, relation in enumerate(RELATIONS)}
    known = {b if b in STYLES else next((r for r in relations if inverse(r) == b or r == b), b) for b in bases}
    return sorted(known, key=lambda relation: (order.get(relation, len(order)), relation))


def _unique(terms: Sequence[Term]) -> list[Term]:
    return list({term.key: term for term in terms}.values())


def _by_neighbours(tails: list[Term], heads: list[Term], rationales: Sequence[Reason]) -> list[Term]:
    """Order the right column by the mean place of what each is joined to, which keeps crossings few."""
    place = {term.key: position for position, term in enumerate(heads)}
    joined: dict[str, list[int]] = {}
    for rationale in rationales:
        joined.setdefault(rationale.tail.key, []).append(place[rationale.head.key])
    return sorted(tails, key=lambda term: sum(joined[term.key]) / len(joined[term.key]))


def _spread(terms: Sequence[Term], rows: int) -> dict[str, float]:
    """Centres of the boxes of a column, spread over the height of the fuller column."""
    step = rows * ROW / max(len(terms), 1)
    return {term.key: TOP + step * (position + 0.5) for position, term in enumerate(terms)}

"""Pictures: well-formed, complete, nothing on top of anything else, facts and assumptions apart, sums that add up."""

from dataclasses import replace
from itertools import combinations, pairwise
from xml.etree import ElementTree

import pytest
from sample_predictions import inapplicable, prediction

from cogstage.rationale.layout import NARROW, WIDE, Shape, lay_out
from cogstage.rationale.picture import png, svg
from cogstage.rationale.record import Association, Prediction, Term
from cogstage.rationale.wording import opposes, status_in_words, steps

SVG = "{http://www.w3.org/2000/svg}"


def published(size: int) -> Prediction:
    """A prediction as the published model makes it: both ends of every triple are associations."""
    record = prediction(size)
    why = Association(0.2, 0.2, 3, None, None)

    def moved(reasons: tuple) -> tuple:  # type: ignore[type-arg]
        return tuple(
            replace(
                r,
                head=Term(f"H{n}", f"Head {n}"),
                tail=Term(f"T{n % 3}", f"Tail {n % 3}"),
                head_association=why,
                tail_association=why,
            )
            for n, r in enumerate(reasons)
        )

    return replace(record, reasons_for=moved(record.reasons_for), reasons_against=moved(record.reasons_against))


@pytest.mark.parametrize("make", [prediction, published])
@pytest.mark.parametrize("size", [0, 1, 5, 10, 15])
def test_svg_holds_every_term_and_number(make: object, size: int) -> None:
    record = make(size)  # type: ignore[operator]
    root = ElementTree.fromstring(svg(record))
    numbers = [group.findtext(f"{SVG}text") for group in root.iter(f"{SVG}g") if group.get("class") == "number"]
    assert numbers == [str(rank) for rank in range(1, size + 1)]
    titles = " ".join(element.text or "" for element in root.iter(f"{SVG}title"))
    for reason in record.reasons:
        assert reason.head.name in titles
        assert reason.tail.name in titles


@pytest.mark.parametrize(
    ("make", "shape", "size"),
    [
        *((make, WIDE, size) for make in (prediction, published) for size in (5, 10, 15)),
        *((prediction, NARROW, size) for size in (5, 10)),  # a page draws ten
    ],
)
def test_nothing_overlaps(make: object, shape: Shape, size: int) -> None:
    layout = lay_out(make(size), shape=shape, whole=shape is WIDE)  # type: ignore[operator]
    for one, other in combinations(layout.boxes, 2):
        assert abs(one.x - other.x) >= shape.box or abs(one.y - other.y) >= (one.height + other.height) / 2
    for one, other in combinations(layout.badges, 2):
        assert (one.x - other.x) ** 2 + (one.y - other.y) ** 2 >= 14**2
    for box in layout.boxes:
        assert 0 <= box.x <= shape.width - box.width
        assert box.y - box.height / 2 >= 0
        assert box.y + box.height / 2 <= layout.height


def test_a_narrow_picture_has_everything_of_the_wide_one() -> None:
    record = prediction(10)
    wide, narrow = (ElementTree.fromstring(svg(record, whole=False, narrow=narrow)) for narrow in (False, True))
    for kind in ("node", "number"):
        keys = [
            sorted(
                g.get("data-node") or g.get("data-reason") or "" for g in root.iter(f"{SVG}g") if g.get("class") == kind
            )
            for root in (wide, narrow)
        ]
        assert keys[0] == keys[1]
    assert float((narrow.get("viewBox") or "").split()[2]) < 390  # a phone
    legend = [float(text.get("x") or 0) for text in narrow.iter(f"{SVG}text") if text.text == "is similar to"]
    assert legend
    assert all(x < 330 for x in legend)


def test_a_name_of_any_length_is_whole() -> None:
    name = " ".join(["pseudohypoparathyroidism"] * 12)
    record = replace(prediction(5), head=Term("C1", name, "drug"))
    box = next(box for box in lay_out(record).boxes if box.target)
    assert " ".join(box.lines) == name
    assert box.height >= 16 * len(box.lines)


def test_widths_follow_the_shares_and_inverses_point_back() -> None:
    record = prediction(6)
    curves = {curve.reason: curve for curve in lay_out(record).curves if curve.title[:1].isdigit()}
    reasons = record.reasons_for + record.reasons_against
    order = sorted(range(6), key=lambda n: -abs(reasons[n].share))
    widths = [curves[n + 1].width for n in order]
    assert widths == sorted(widths, reverse=True)
    for number, reason in enumerate(reasons, start=1):
        assert (curves[number].x2 > curves[number].x1) != reason.relation.endswith("_inverse")


def test_facts_and_assumptions_look_different() -> None:
    record = prediction(8)
    layout = lay_out(record)
    for number, reason in enumerate(record.reasons_for + record.reasons_against, start=1):
        line = next(c for c in layout.curves if c.reason == number and c.title.startswith(f"{number}."))
        badge = next(b for b in layout.badges if b.reason == number)
        assert (line.dash == ()) == badge.filled == reason.known_fact
        assert ("known fact" if reason.known_fact else "assumed, 0.80") in line.title


def test_a_triple_below_one_half_is_not_called_assumed() -> None:
    record = prediction(8)
    against = [replace(reason, known_fact=False, relation_probability=0.2) for reason in record.reasons_against]
    titles = " ".join(curve.title for curve in lay_out(replace(record, reasons_against=tuple(against))).curves)
    assert titles.count("considered unlikely, 0.20") == len(against) > 0


@pytest.mark.parametrize("size", [0, 1, 7, 15])
@pytest.mark.parametrize("shown", [3, 15])
def test_the_sum_adds_up(size: int, shown: int) -> None:
    record = prediction(size)
    done = steps(record.top(shown))
    assert sum(step.share for step in done) == pytest.approx(record.logit, abs=1e-12)
    for before, after in pairwise(done):
        assert after.before == pytest.approx(before.before + before.share, abs=1e-12)
    bars = lay_out(record, shown).bars
    assert len(bars) == len(done) + 1
    scale = bars[-1].width / abs(record.logit)  # the last bar is the answer
    for bar, step in zip(bars, done, strict=False):
        assert bar.width == pytest.approx(max(1.5, abs(step.share) * scale), rel=1e-6)


def test_opposite_relations_are_flagged() -> None:
    record = prediction(6)
    flagged = {reason.relation for reason in record.reasons if opposes(reason, record)}
    assert "causes" in flagged
    assert "may_treat" not in flagged
    assert "contradicts the one in question" in svg(record)


def test_no_sum_for_a_question_that_does_not_apply() -> None:
    layout = lay_out(inapplicable(prediction(4)))
    assert not layout.bars
    assert "does not apply" in layout.title


def test_names_are_escaped() -> None:
    assert "<500 mg>" not in svg(prediction(6))
    assert "&lt;500 mg&gt;" in svg(prediction(6))


def test_png_is_a_png() -> None:
    assert png(prediction(5), dots_per_inch=50).startswith(b"\x89PNG\r\n")
    assert png(replace(prediction(2), head=Term("a", "costs $5 and $\\frac{")), dots_per_inch=50)


@pytest.mark.parametrize("letter", ["\x00", "\x0b", "\x1b", "\x7f", "\x9b", "\ud800", "\ufffe", "\uffff"])
def test_characters_that_xml_forbids_never_reach_a_picture(letter: str) -> None:
    record = replace(prediction(3), head=Term("C1", f"As{letter}pirin", "dr" + letter))
    text = svg(record)
    assert letter not in text
    ElementTree.fromstring(text)
    assert "Aspirin" in text


def test_notebooks_show_the_picture() -> None:
    record = prediction(5)
    assert record._repr_svg_() == svg(record)
    assert "<script" not in record._repr_html_()
    root = ElementTree.fromstring(record._repr_html_())
    assert root.tag == f"{SVG}svg"


@pytest.mark.parametrize("narrow", [False, True])
def test_a_long_word_is_smaller_and_not_broken(narrow: bool) -> None:
    record = replace(prediction(3), head=Term("D1", "Nitroglycerin", "drug"))
    root = ElementTree.fromstring(svg(record, narrow=narrow))
    (text,) = [one for one in root.iter(f"{SVG}text") if one.text == "Nitroglycerin"]
    assert (float(text.get("font-size", "")) < 13) == narrow


def test_the_picture_to_keep_has_status_legend_and_disclaimer() -> None:
    record = prediction(6)
    drawn = " ".join(svg(record).split())
    for words in ("reason for", "reason against", "not medical advice"):
        assert words in drawn
    for reason in record.reasons:
        assert f"({status_in_words(reason)})" in drawn

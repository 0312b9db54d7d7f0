"""Pictures: well-formed, complete, nothing on top of anything else, told apart without colour."""

from dataclasses import replace
from itertools import combinations
from xml.etree import ElementTree

import pytest
from sample_predictions import prediction

from cogstage.rationale.layout import BOX_HEIGHT, BOX_WIDTH, STYLES, WIDTH, lay_out
from cogstage.rationale.picture import png, svg
from cogstage.rationale.record import Term

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("size", [0, 1, 5, 10, 15])
def test_svg_holds_every_term_and_rank(size: int) -> None:
    record = prediction(size)
    root = ElementTree.fromstring(svg(record))
    texts = [element.text for element in root.iter(f"{SVG}text")]
    titles = " ".join(element.text or "" for element in root.iter(f"{SVG}title"))
    assert [text for text in texts if text and text.isdigit()] == [str(rank) for rank in range(1, size + 1)]
    for rationale in record.reasons:
        assert rationale.head.name in titles
        assert rationale.tail.name in titles


@pytest.mark.parametrize("size", [5, 10, 15])
def test_nothing_overlaps(size: int) -> None:
    layout = lay_out(prediction(size))
    for one, other in combinations(layout.boxes, 2):
        assert abs(one.x - other.x) >= BOX_WIDTH or abs(one.y - other.y) >= BOX_HEIGHT
    for one, other in combinations(layout.badges, 2):
        assert (one.x - other.x) ** 2 + (one.y - other.y) ** 2 >= 15**2
    for box in layout.boxes:
        assert 0 <= box.x <= WIDTH - BOX_WIDTH
        assert box.y - BOX_HEIGHT / 2 >= 0
        assert box.y + BOX_HEIGHT / 2 <= layout.height


def test_widths_follow_the_scores_and_inverses_point_back() -> None:
    record = prediction(6)
    curves = [curve for curve in lay_out(record).curves if curve.title[:1].isdigit()]
    widths = [curve.width for curve in curves]
    assert widths == sorted(widths, reverse=True)
    for curve, rationale in zip(curves, record.reasons, strict=True):
        assert (curve.x2 > curve.x1) != rationale.relation.endswith("_inverse")


def test_relations_differ_in_colour_and_in_dash() -> None:
    colours, dashes = zip(*STYLES.values(), strict=True)
    assert len(set(colours)) == len(set(dashes)) == len(STYLES)


def test_names_are_escaped() -> None:
    assert "<500 mg>" not in svg(prediction(5))
    assert "&lt;500 mg&gt;" in svg(prediction(5))


def test_png_is_a_png() -> None:
    assert png(prediction(5), dots_per_inch=50).startswith(b"\x89PNG\r\n")


@pytest.mark.parametrize("letter", ["\x00", "\x0b", "\x1b", "\x7f", "\x9b", "\ud800", "\ufffe", "\uffff"])
def test_characters_that_xml_forbids_never_reach_a_picture(letter: str) -> None:
    record = replace(prediction(3), head=Term("C1", f"As{letter}pirin", "dr" + letter))
    text = svg(record)
    assert letter not in text
    ElementTree.fromstring(text)
    assert "Aspirin" in text

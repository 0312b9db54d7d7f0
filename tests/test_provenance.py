"""What counts as protection where it is required."""

from __future__ import annotations

import pytest

from cogstage.errors import UsageError
from cogstage.provenance import privacy_text, privacy_weakness
from cogstage.web.privacy import privacy_warning

PRIVATE = {"epsilon": 1.0, "delta": 1e-6, "pairs": 100}


@pytest.mark.parametrize(
    ("made_with", "reason"),
    [
        ({}, "they are exact"),
        ({"suppress_below": 1}, "it suppresses counts below 1 only"),
        ({"suppress_below": 4}, "it suppresses counts below 4 only"),
        ({"suppress_below": 5}, None),
        ({"suppress_below": 11}, None),
        ({"private": PRIVATE}, None),
        ({"private": {**PRIVATE, "epsilon": 1e6, "delta": 0.99}}, "its ε is 1e+06"),
        ({"private": {**PRIVATE, "epsilon": 10.5}}, "its ε is 10.5"),
        ({"private": {**PRIVATE, "delta": 0.99}}, "its δ is 0.99"),
        ({"private": {**PRIVATE, "seed": "3, set by the user"}}, "the noise came from a known seed"),
        ({"private": {**PRIVATE, "parts": [PRIVATE, {**PRIVATE, "seed": "3"}]}}, "the noise came from a known seed"),
    ],
)
def test_weak_protection_is_refused_with_its_reason(made_with: dict[str, object], reason: str | None) -> None:
    text = privacy_text(made_with)
    weakness = privacy_weakness(text)
    if reason is None:
        assert weakness is None
        assert privacy_warning(text, True, False) is None
        return
    assert weakness is not None
    assert weakness.startswith(reason)
    with pytest.raises(UsageError, match="`require_private`") as caught:
        privacy_warning(text, True, False)
    assert reason in str(caught.value)
    if "private" in made_with and "seed" in str(made_with):
        assert "are not protected" in str(privacy_warning(text, False, False))

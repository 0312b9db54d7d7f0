"""Filters of a list of candidates, and the share of the queue that one client may have."""

from __future__ import annotations

import numpy as np
import pytest

from cogstage.web.ranking import CandidateRanking
from cogstage.web.work_queue import Busy, WorkQueue


@pytest.fixture
def ranking() -> CandidateRanking:
    """Six candidates, of which every second is known and every third was never counted together with the term."""
    number = np.arange(6)
    return CandidateRanking(
        relation="may_treat",
        side="tail",
        given=9,
        node=number,
        logit=3.0 - number,
        known=number % 2 == 0,
        with_facts=np.ones(6, bool),
        contradicted=np.zeros(6, bool),
        indication=None,
        together=np.where(number % 3 == 0, 0, 10 * number),
        type=np.where(number < 4, "drug", "food"),
    )


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({}, [0, 1, 2, 3, 4, 5]),
        ({"known": "new"}, [1, 3, 5]),
        ({"known": "known"}, [0, 2, 4]),
        ({"together": "yes"}, [1, 2, 4, 5]),
        ({"together": "never"}, [0, 3]),
        ({"known": "new", "together": "never"}, [3]),
        ({"kind": "food"}, [4, 5]),
        ({"least": 0.6}, [0, 1, 2]),
        ({"sort": "together"}, [5, 4, 2, 1, 0, 3]),
        ({"drop": np.arange(6) == 1}, [0, 2, 3, 4, 5]),
    ],
)
def test_filters_keep_what_they_name(ranking: CandidateRanking, filters: dict, expected: list[int]) -> None:  # type: ignore[type-arg]
    assert ranking.choose(**filters).tolist() == expected


def test_one_client_has_a_quarter_of_the_queue_and_others_the_rest() -> None:
    queue = WorkQueue(8)
    queue.enter("one")
    queue.enter("one")
    with pytest.raises(Busy, match="of yours"):
        queue.enter("one")
    for client in ("two", "three", "four"):
        queue.enter(client)
        queue.enter(client)
    with pytest.raises(Busy, match="8 large requests"):
        queue.enter("five")
    queue.leave("one")
    queue.enter("one")

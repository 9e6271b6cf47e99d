"""Whatever became of a session, wherever it goes on: no API has a reason to refuse what we send."""

import json
import random
from collections.abc import Iterable

import pytest
from tests.providers.odd_histories import PLACES, Place, asked, histories

SEEDS = (*range(21), 1_036, 1_052, 1_165)


def troubles(place: Place, seeds: Iterable[int]) -> dict[str, int]:
    """What a double has against the requests of random sessions, and in how many."""
    found: dict[str, int] = {}
    for seed in seeds:
        jitter = random.Random(seed)
        api = place.api()
        for messages in histories(seed, place):
            call = api.prepare(asked(messages, place, jitter))
            for said in place.broken(json.loads(call.body)):
                found[said] = found.get(said, 0) + 1
    return found


@pytest.mark.sample(12)
@pytest.mark.parametrize("place", PLACES, ids=[f"{place.provider}:{place.model}" for place in PLACES])
def test_no_api_refuses_a_session_that_was_denied_cut_compacted_interrupted_or_moved(place: Place) -> None:
    assert troubles(place, SEEDS) == {}


@pytest.mark.soak
@pytest.mark.parametrize("place", PLACES, ids=[f"{place.provider}:{place.model}" for place in PLACES])
def test_no_api_refuses_one_of_many_sessions(place: Place) -> None:
    assert troubles(place, range(1_000, 1_400)) == {}

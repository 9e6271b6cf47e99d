"""A session that goes on for long in a small window knows how it began, and its requests grow at their end only."""

import pytest

from tests.engine.long_session import WINDOW, work
from treadle.protocol.models import ToolProtocol
from treadle.protocol.notifications import TurnStop


@pytest.mark.parametrize("protocol", [ToolProtocol.NATIVE])
async def test_a_long_session_never_exceeds_its_window_and_never_forgets_how_it_began(protocol: ToolProtocol) -> None:
    worker, outcome, compactions = await work(300, protocol)
    assert outcome.stop is TurnStop.END_TURN
    assert worker.requests == 301
    assert worker.largest <= WINDOW
    assert worker.broken == []
    assert compactions > 5
    assert worker.asked_facts >= 30
    assert len(worker.missing) <= worker.asked_facts * 0.05, worker.missing
    assert worker.prefix_lost <= compactions

"""A 429 that one process got keeps the others from calling, for a time that grows, whoever they are."""

import os

from tests.providers.support import failure_of, request
from tests.providers.test_breaker import Clock, guarded

from treadle.protocol.models import ErrorKind
from treadle.providers.breaker import LONGEST_PACE, Circuits
from treadle.providers.scripted.script import Refuse, Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer
from treadle.providers.shared_limits import FIRST_SPREAD, LONGEST_SPREAD, REMEMBERED, UNSAID, SharedLimits

ME, OTHER = ("https://a", "key 1"), ("https://a", "key 2")


def test_all_of_an_account_wait_then_call_again_spread_over_a_growing_time() -> None:
    clock = Clock()
    limits = SharedLimits(clock, lambda: 1.0)
    assert limits.wait(ME) is None
    limits.hold(ME, 10.0)
    assert (limits.wait(ME), limits.wait(OTHER)) == (10.0 + FIRST_SPREAD, None)
    clock.now += 10.0
    assert limits.wait(ME) is None
    spreads = []
    for _ in range(8):
        limits.hold(ME, None)
        spreads.append((limits.wait(ME) or 0.0) - UNSAID)
        clock.now += UNSAID
    assert spreads == [min(LONGEST_SPREAD, FIRST_SPREAD * 2**n) for n in range(1, 9)]
    clock.now += REMEMBERED
    limits.hold(ME, 5.0)
    limits.hold(ME, 1.0)
    assert limits.wait(ME) == 5.0 + 2 * FIRST_SPREAD


def test_a_forked_process_tells_the_one_that_forked_it() -> None:
    limits = SharedLimits(lambda: 100.0, lambda: 0.0)
    child = os.fork()
    if not child:
        limits.hold(ME, 7.0)
        os._exit(0)
    os.waitpid(child, 0)
    assert limits.wait(ME) == 7.0


async def test_who_was_not_refused_itself_sends_nothing_either() -> None:
    clock = Clock()
    limits = SharedLimits(clock, lambda: 0.0)
    first, second = Circuits(clock), Circuits(clock)
    for circuits in (first, second):
        circuits.share(limits)
    limited = Refuse(status=429, headers={"retry-after": "90"})
    async with ScriptedServer(Script(turns=(Turn(items=(limited,)),))) as server:
        refused = (await failure_of(guarded(server.base_url, first), request())).error
        paced = (await failure_of(guarded(server.base_url, second), request())).error
        assert (refused.kind, refused.paced) == (ErrorKind.RATE_LIMIT, False)
        assert (paced.kind, paced.paced, paced.retry_after) == (ErrorKind.RATE_LIMIT, True, LONGEST_PACE)
        assert len(server.requests) == 1

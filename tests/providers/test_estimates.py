"""Our estimate of what a reply used that was cut, against what real providers billed for recorded replies."""

import re
import zlib
from dataclasses import dataclass

import pytest
from tests.providers.recordings import FOLDER, recordings
from tests.providers.test_recordings import play

from treadle.context.transcript import BYTES_PER_TOKEN
from treadle.engine.runtime.model_requests import CallMeter, RequestSize
from treadle.protocol.models import (
    StreamCallArguments,
    StreamCallStart,
    StreamEvent,
    StreamFailure,
    StreamStop,
    StreamText,
    StreamThinking,
    StreamThinkingDone,
)

RECORDED = [one for one in recordings() if one.status == 200]
WORKED_UNSEEN = re.compile(
    rb"server_tool_use|executableCode|(?:shell|web_search|file_search|tool_search|image_generation|code_interpreter)_call"
    rb"|openrouter:|num_search_queries|server_tool_calls"
)
"""What a reply holds where its provider ran tools by itself: it bills words that it does not send."""

pytestmark = pytest.mark.skipif(not RECORDED, reason=f"there are no recordings in {FOLDER}")


@dataclass(frozen=True)
class Estimated:
    """One recorded reply: what was billed for it as far as it was sent, and our estimate from its words alone."""

    name: str
    billed: int
    estimate: int

    @property
    def off(self) -> float:
        return abs(self.estimate - self.billed) / self.billed


def characters(events: list[StreamEvent]) -> int:
    found = 0
    for event in events:
        match event:
            case StreamText(text=text) | StreamThinking(text=text) | StreamCallArguments(text=text):
                found += len(text)
            case StreamCallStart(name=name):
                found += len(name) + 40  # what is around a call is billed, too
            case _:
                pass
    return found


def is_whole(events: list[StreamEvent], billed: int) -> bool:
    """Whether all that was billed was sent: nothing searched, nothing encrypted, not shortened by who recorded it."""
    hidden = any(isinstance(one, StreamThinkingDone) and (one.searched or one.redacted) for one in events)
    return not hidden and characters(events) >= billed


async def estimates() -> list[Estimated]:
    """Read every recorded reply that says what it used, the same one once."""
    found: dict[str, Estimated] = {}
    for one in RECORDED:
        events = await play(one)
        last = events[-1]
        if not isinstance(last, StreamStop) or WORKED_UNSEEN.search(one.body):
            continue
        thinks = any(isinstance(event, StreamThinking) for event in events)
        billed = last.usage.output_tokens - (0 if thinks else last.usage.reasoning_tokens)
        if billed <= 0 or not is_whole(events, billed):
            continue
        meter = CallMeter()
        meter.send(RequestSize(tokens=0, cached=0, bytes_per_token=BYTES_PER_TOKEN))
        for event in events:
            if not isinstance(event, StreamStop | StreamFailure):
                meter.take(event)
        found[repr(events)] = Estimated(one.name, billed, meter.used.output_tokens)
    return list(found.values())


def is_tuned_on(one: Estimated) -> bool:
    """Whether the constants of the estimate were chosen by it; the other half only checks them."""
    return zlib.crc32(one.name.encode()) % 2 == 0


async def test_estimates_of_recorded_replies_are_near_what_their_providers_billed() -> None:
    every = await estimates()
    for half in ([one for one in every if is_tuned_on(one)], [one for one in every if not is_tuned_on(one)]):
        off = sorted(one.off for one in half)
        print(f"{len(off)} replies: median {off[len(off) // 2]:.0%}, p90 {off[len(off) * 9 // 10]:.0%}, ", end="")
        total = sum(one.estimate for one in half) / sum(one.billed for one in half)
        print(f"all together {total:.0%}")
        assert len(half) > 25
        assert off[len(off) // 2] < 0.25
        assert off[len(off) * 9 // 10] < 0.7
        assert 0.8 < total < 1.2


async def test_estimates_of_longer_recorded_replies_are_nearer() -> None:
    off = sorted(one.off for one in await estimates() if one.billed >= 60)
    print(f"{len(off)} replies: median {off[len(off) // 2]:.0%}, p90 {off[len(off) * 9 // 10]:.0%}")
    assert len(off) > 20
    assert off[len(off) // 2] < 0.2

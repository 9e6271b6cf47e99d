"""What stops a turn that does not get on: replies that are mistakes in a row, and the same calls with the same results.

Everything here looks at one whole reply, once, when each of its calls has a result, or when it has no call.
"""

import hashlib
from collections.abc import Sequence

import msgspec

from treadle.engine.core import texts
from treadle.engine.core.state import CallState, State, guarded, with_note
from treadle.protocol.patterns import regex
from treadle.protocol.tools import Outcome

_LONGEST_PERIOD = 3
"""Replies; A, B, C, A, B, C, … is a loop too."""

_REMEMBERED = 15
"""Replies; enough for the longest period as often as the limit says."""

_WARN_POLLS = 3
_MOST_POLLS = 30
"""Looks in a row at a running command that all gave the same."""


def after_reply(state: State) -> State:
    """Count the reply whose calls are all finished."""
    return _count_repeats(_count_mistakes(state))


def _count_mistakes(state: State) -> State:
    """A reply is a mistake when a call of it could not be made and none ran."""
    outcomes = {call.result.outcome for call in state.calls if call.result is not None}
    if not outcomes:
        return state
    wrong = Outcome.INVALID in outcomes and not outcomes & {Outcome.OK, Outcome.FAILED}
    return guarded(state, mistakes=state.guard.mistakes + 1 if wrong else 0)


def _count_repeats(state: State) -> State:
    """Whatever changes a file, or comes of something that still runs, is no repetition."""
    results = [call.result for call in state.calls if call.result is not None]
    if not results or any(result.changes for result in results):
        return guarded(state, recent=(), polls=0)
    fingerprint = _fingerprint(state.calls)
    if any(result.running for result in results):
        return _count_polls(state, fingerprint)
    recent = (*state.guard.recent, fingerprint)[-_REMEMBERED:]
    state = guarded(state, recent=recent, polls=0)
    most = state.limits.max_repeats
    for period in range(1, _LONGEST_PERIOD + 1):
        count = repetitions(recent, period)
        if count >= (most if period == 1 else max(2, most - 1)):
            return guarded(state, looping=True)
        if count == state.limits.warn_repeats and _ended_a_round(recent, period, count):
            return with_note(state, texts.repeated(_names(state.calls), count))
    return state


def _count_polls(state: State, fingerprint: str) -> State:
    count = state.guard.polls + 1 if state.guard.recent == (fingerprint,) else 1
    state = guarded(state, recent=(fingerprint,), polls=count)
    if count >= _MOST_POLLS:
        return guarded(state, looping=True)
    return state if count % _WARN_POLLS else with_note(state, texts.polled(count))


def repetitions(recent: Sequence[str], period: int) -> int:
    """Say how often the last `period` replies stand in a row at the end."""
    block = tuple(recent[-period:])
    if len(block) < period or (period > 1 and len(set(block)) == 1):
        return 0
    count = 0
    for end in range(len(recent), period - 1, -period):
        if tuple(recent[end - period : end]) != block:
            break
        count += 1
    return count


def _ended_a_round(recent: Sequence[str], period: int, count: int) -> bool:
    """Whether the count rose just now: in the middle of a round the same rounds are found, begun one later."""
    before = recent[:-1]
    return repetitions(before, period) < count


def _fingerprint(calls: Sequence[CallState]) -> str:
    value = [
        (call.call.name, call.call.arguments, call.result.outcome, call.result.content)
        for call in calls
        if call.result is not None
    ]
    return hashlib.sha256(msgspec.json.encode(value, order="deterministic")).hexdigest()[:32]


def _names(calls: Sequence[CallState]) -> str:
    return ", ".join(dict.fromkeys(call.call.name for call in calls))


_SENTENCE = regex(r"(?<=[.!?])\s+|\n+")
_LEADING = r"(?:(?:now|next|first|then|so|ok|okay|great|good|alright|right|after that|finally)[,:]?\s+)*"
_OPENINGS = (
    *("i'll", "i\u2019ll", "i will", "i'm going to", "i\u2019m going to", "i am going to", "let me", "let's"),
    *("let\u2019s", "let us", "i need to", "i have to", "i still need to"),
)
_STEP = regex(
    rf"{_LEADING}(?:{'|'.join(_OPENINGS)})\s+(?:now\s+|next\s+|first\s+|also\s+|then\s+|just\s+|quickly\s+)*(\w+)"
)
_NO_STEPS = frozenset(
    (
        *("await", "be", "defer", "explain", "gladly", "hand", "happily", "hold", "know", "leave", "need", "never"),
        *("not", "pause", "recap", "stop", "summarise", "summarize", "wait"),
    )
)
"""Words behind `I will` and the like with which the model waits, or tells, instead of going on."""

_FOR_THE_USER = regex(
    r"\b(?:if|once|when|whenever|as soon as|unless|until) you\b|\byour (?:answer|go-ahead|decision)\b|\?$"
)


def announces_step(text: str) -> bool:
    """Whether the end of a text announces a next step of the model's own, such as `Let me run the tests.`

    A text that ends with a colon announces something, too. English only; of other languages only the colon is seen.
    """
    last = next((part for part in reversed(_SENTENCE.split(text.strip())) if part.strip(" *_`~-#>")), "")
    last = last.strip(" *_`~-#>\t").lower()
    if last.endswith((":", "：")):
        return True
    if not any(opening in last for opening in _OPENINGS):
        return False
    step = _STEP.match(last)
    return step is not None and step[1] not in _NO_STEPS and _FOR_THE_USER.search(last) is None

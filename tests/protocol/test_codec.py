"""The codec: no text can stop it, and what a record becomes is what it reads back as."""

import subprocess
import sys

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from treadle.protocol.codec import decode_data, encodable, encode
from treadle.protocol.events import CallFinished, CallJudged, EventData
from treadle.protocol.messages import Text
from treadle.protocol.permissions import Decision, Verdict
from treadle.protocol.tools import CallResult, FileChange, Outcome, Preview, ReadPath, Risk

_TEXTS = st.text(st.characters(exclude_categories=()) | st.sampled_from("\\\udce9\ud800x"), max_size=12)


def _events(text: str) -> tuple[EventData, ...]:
    decision = Decision(verdict=Verdict.ALLOW, risk=Risk.READ, digest="d")
    result = CallResult(
        outcome=Outcome.OK, content=(Text(text=text),), changes=(FileChange(path=text, before="", after="a"),)
    )
    judged = CallJudged(call_id="1", decision=decision, preview=Preview(title=text), accesses=(ReadPath(path=text),))
    return CallFinished(call_id="1", result=result), judged


@example("\ud800")
@given(_TEXTS)
def test_any_text_can_be_kept_and_reads_back_as_it_was_taken(text: str) -> None:
    for event in _events(text):
        taken = encodable(event)
        assert decode_data(encode(taken)) == taken
        assert encode(event) == encode(taken)


def test_a_sound_record_stays_the_same_object() -> None:
    (event, _) = _events("naïve \\xe9 \x00")
    assert encodable(event) is event


def test_halves_of_characters_become_escapes_that_are_like_nothing_else() -> None:
    assert encodable("caf\udce9 \\xe9 \ud83d") == r"caf\xe9 \\xe9 \ud83d"
    assert msgspec.json.decode(encode({"a\udcff": ["\udcff"]})) == {r"a\xff": [r"\xff"]}


READING = """
import random, sys, threading, typing, json
sys.setswitchinterval(1e-6)
from treadle.protocol import codec, errors, events
samples = [
    json.dumps({"type": one.__struct_config__.tag, name: 1}).encode()
    for one in typing.get_args(events.EventData) for name in one.__struct_encode_fields__
]
start = threading.Barrier(4)
def read():
    start.wait()
    for sample in random.sample(samples, len(samples)):
        try:
            codec.decode_data(sample)
        except errors.StoreError:
            pass
threads = [threading.Thread(target=read) for _ in range(4)]
for one in threads: one.start()
for one in threads: one.join()
"""


@pytest.mark.parametrize("number", range(6))
def test_threads_that_read_events_for_the_first_time_at_once_do_not_end_the_program(number: int) -> None:
    """One look through the types at a time; without that about every second run ended with SIGSEGV."""
    ended = subprocess.run([sys.executable, "-c", READING], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, ""), number

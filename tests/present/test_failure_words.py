"""Which ends of a turn count as failures, for every screen alike."""

from treadle.present.failure_words import is_failure
from treadle.protocol.notifications import TurnStop


def test_what_a_person_or_a_limit_stopped_has_not_failed() -> None:
    failed = {stop for stop in TurnStop if is_failure(stop)}
    assert failed == {TurnStop.ERROR, TurnStop.MISTAKES, TurnStop.LOOP, TurnStop.REFUSAL}
    assert not is_failure("unfinished")

"""A sample of interrupts at random moments of the engine: each ends its turn, with a conversation that is valid."""

from tests.fakes.clock import run_at_once
from tests.rehearsal.interrupts import interrupt_all

SEED = 1


def test_an_interrupt_at_a_random_moment_ends_the_turn_and_leaves_nothing() -> None:
    found = run_at_once(interrupt_all(SEED, 100))
    assert [one.trouble for one in found if one.trouble] == []
    assert sum(one.seconds is not None for one in found) > 50

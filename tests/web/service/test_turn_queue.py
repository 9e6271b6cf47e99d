"""The queue of turns: never more than there is room for, everybody's turn comes, and nobody waits behind a crowd."""

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.web.service.turn_queue import TurnQueue

USERS = ("alice", "bob", "carol")


def test_who_has_fewest_at_work_is_next_and_a_crowd_keeps_nobody_waiting() -> None:
    queue = TurnQueue(2, lambda _: 2)
    for number in range(100):
        queue.want("alice", f"a{number}")
    assert queue.admit() == [("alice", "a0"), ("alice", "a1")]
    queue.want("bob", "b0")
    queue.want("bob", "b1")
    places = queue.places()
    assert [places[one] for one in (("bob", "b0"), ("bob", "b1"), ("alice", "a2"))] == [1, 2, 3]
    queue.gives("alice", "a0")
    assert queue.admit() == [("bob", "b0")]
    queue.gives("alice", "a1")
    assert queue.admit() == [("alice", "a2")], "bob has one at work, and alice none"
    queue.gone("bob")
    assert queue.admit() == [("alice", "a3")]
    assert queue.working == {"alice": 2}


def test_a_turn_that_works_or_waits_is_not_counted_twice_and_one_that_left_holds_no_place() -> None:
    queue = TurnQueue(1, lambda _: 1)
    for _ in range(2):
        queue.want("alice", "one")
    assert queue.admit() == [("alice", "one")]
    queue.want("alice", "one")
    assert (queue.waiting, queue.admit()) == (0, [])
    queue.want("alice", "two")
    queue.gives("alice", "two")
    queue.gives("alice", "never")
    assert (queue.waiting, queue.places()) == (0, {})


MOVES = st.lists(st.tuples(st.sampled_from(["want", "gives", "gone"]), st.sampled_from(USERS), st.integers(0, 5)))


@settings(max_examples=300)
@given(MOVES, st.integers(1, 4), st.dictionaries(st.sampled_from(USERS), st.integers(1, 3)))
def test_no_order_of_wishes_lets_too_many_work_or_loses_one(
    moves: list[tuple[str, str, int]], most: int, own: dict[str, int]
) -> None:
    queue = TurnQueue(most, lambda user: own.get(user, 2))
    wanted: set[tuple[str, str]] = set()
    working: set[tuple[str, str]] = set()
    for kind, user, number in moves:
        one = (user, str(number))
        match kind:
            case "want":
                queue.want(*one)
                wanted.add(one)
            case "gives":
                queue.gives(*one)
                wanted.discard(one)
            case _:
                queue.gone(user)
                wanted = {other for other in wanted if other[0] != user}
        working = (working & wanted) | set(queue.admit())
        assert working <= wanted
        assert len(working) <= most
        counts = Counter(user for user, _ in working)
        assert all(counts[user] <= own.get(user, 2) for user in USERS)
        waits = wanted - working
        assert sorted(queue.places().values()) == list(range(1, len(waits) + 1))
        room = len(working) < most
        assert not (room and any(counts[user] < own.get(user, 2) for user, _ in waits)), "nobody waits beside room"

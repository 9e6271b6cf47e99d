"""The end of a turn says what is left of what it changed, after each undo, reject and restore, and after its undo."""

from treadle.present.fold import fold_notification
from treadle.present.item_book import ItemBook
from treadle.present.items import TurnItem
from treadle.present.record_words import turn_words
from treadle.present.view import SessionView
from treadle.protocol.attach import Stamped
from treadle.protocol.checkpoints import CheckpointTaken, Moment, OwnTotal
from treadle.protocol.notifications import OwnWorkChanged, TurnEnded, TurnOutcome, TurnStop
from treadle.protocol.tools import FileChange

ROOT = "/w"


def _change(name: str, before: str, after: str, added: int = 2, removed: int = 1) -> FileChange:
    return FileChange(path=f"{ROOT}/{name}", before=before, after=after, added=added, removed=removed)


def _ended(*changes: FileChange) -> TurnEnded:
    return TurnEnded(outcome=TurnOutcome(stop=TurnStop.END_TURN, steps=1, cost=0.0, changes=changes))


def _restored(*now: FileChange) -> OwnWorkChanged:
    taken = CheckpointTaken(n=3, step=1, moment=Moment.RESTORED, trees=(), own=now, total=OwnTotal())
    return OwnWorkChanged(total=OwnTotal(), restored=taken.recounted)


def _ends(*notifications: TurnEnded | OwnWorkChanged) -> list[TurnItem]:
    book = ItemBook(SessionView(root=ROOT))
    for seq, notification in enumerate(notifications, 1):
        book.take(Stamped(notification=notification, seq=seq))
    items = [placed.item for placed in book.before(None, 100)]
    return [item for item in items if isinstance(item, TurnItem)]


def _left(item: TurnItem) -> tuple[list[str], int]:
    assert [f"{ROOT}/{one.path}" for one in item.files] == [one.path for one in item.outcome.changes]
    return [one.path for one in item.files], item.restored


FIRST = _ended(_change("a.py", "", "a1"), _change("b.py", "b0", "b1"))
SECOND = _ended(_change("b.py", "b1", "b2"), _change("c.py", "c0", "c1"))


def test_what_was_restored_leaves_the_end_of_its_turn_and_comes_back_with_an_undo_of_that() -> None:
    """Files, figures and buttons of the page follow from what the item holds."""
    undone = _restored(_change("a.py", "", ""))
    (first,) = _ends(FIRST, undone)
    assert _left(first) == (["b.py"], 1)
    assert "1 file restored since" in turn_words(first)
    (first,) = _ends(FIRST, undone, _restored(_change("a.py", "", "a1")))
    assert _left(first) == (["a.py", "b.py"], 0)
    assert "restored" not in turn_words(first)


def test_each_turn_loses_its_own_changes_alone() -> None:
    """The second turn is undone: the first one's change of the same file is there, until it goes, too."""
    undone = _restored(_change("b.py", "b0", "b1"), _change("c.py", "", ""))
    assert [_left(one) for one in _ends(FIRST, SECOND, undone)] == [(["a.py", "b.py"], 0), ([], 2)]
    both = _restored(_change("b.py", "", ""))
    assert [_left(one) for one in _ends(FIRST, SECOND, undone, both)] == [(["a.py"], 1), ([], 2)]


def test_a_part_that_was_rejected_leaves_the_file_with_what_is_left() -> None:
    part = _restored(_change("a.py", "", "a-part", added=1, removed=0))
    (first,) = _ends(FIRST, part)
    assert _left(first) == (["a.py", "b.py"], 0)
    assert [(one.added, one.removed) for one in first.files] == [(1, 0), (2, 1)]
    assert "1 file restored in part since" in turn_words(first)
    (first,) = _ends(FIRST, part, _restored(_change("b.py", "", "")))
    assert _left(first) == (["a.py"], 1)
    assert [(one.added, one.removed) for one in first.outcome.changes] == [(1, 0)]
    assert "1 file restored since, and 1 in part" in turn_words(first)
    (first,) = _ends(FIRST, part, _restored(_change("a.py", "", "a1")))
    assert [(one.added, one.removed) for one in first.files] == [(2, 1)] * 2
    assert "restored" not in turn_words(first)


def test_of_what_was_restored_to_an_earlier_turn_every_later_one_has_nothing_left() -> None:
    """Also when others change the file then, or a part of what is left is rejected."""
    third = _ended(_change("b.py", "b2", "b3"))
    back = _restored(_change("b.py", "b0", "b1"))
    others = _restored(_change("b.py", "b0", "b1-and-more"))
    for then in ((), (others,)):
        ends = _ends(FIRST, SECOND, third, back, *then)
        assert [_left(one) for one in ends] == [(["a.py", "b.py"], 0), (["c.py"], 1), ([], 1)]
        assert all((one.added, one.removed) == (2, 1) for end in ends for one in end.files)
    ends = _ends(FIRST, SECOND, third, back, others, _restored(_change("b.py", "b0", "b3")))
    assert [_left(one)[1] for one in ends] == [0, 0, 0]


def test_a_checkpoint_of_work_restores_nothing() -> None:
    """A file that the next turn brings back to what it was is its change; what a step finds is others'."""
    for moment in Moment:
        taken = CheckpointTaken(n=3, step=2, moment=moment, trees=(), own=(_change("a.py", "", ""),), total=OwnTotal())
        (first,) = _ends(FIRST, OwnWorkChanged(total=OwnTotal(), restored=taken.recounted))
        assert first.restored == (moment in (Moment.RESTORED, Moment.BEFORE))


def test_an_end_is_changed_in_its_place_and_once() -> None:
    """What is told again of the same files changes nothing."""
    view, first = fold_notification(SessionView(root=ROOT), Stamped(notification=FIRST, seq=1))
    undone = _restored(_change("a.py", "", ""))
    view, again = fold_notification(view, Stamped(notification=undone, seq=2))
    assert [one.position for one in again] == [one.position for one in first]
    assert not fold_notification(view, Stamped(notification=undone, seq=3))[1]

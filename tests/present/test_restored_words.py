"""What is said of files that were taken back: those that are gone are not called restored."""

from hypothesis import given
from hypothesis import strategies as st

from treadle.present.restored_words import files_back, restored_words
from treadle.protocol.checkpoints import Restored

NAMES = st.lists(st.sampled_from("abcdef"), unique=True)


@given(NAMES, NAMES)
def test_each_file_is_counted_once_as_what_became_of_it(written: list[str], removed: list[str]) -> None:
    said = files_back(written, removed)
    parts = {part.split()[-1]: int(part.split()[0]) for part in said.split(", ")}
    wanted = {"restored": len(written)} if written or not removed else {}
    assert parts == {**wanted, **({"deleted": len(removed)} if removed else {})}
    restored = Restored(checkpoint=3, written=tuple(written), removed=tuple(removed))
    assert restored_words(restored, conversation=False) == f"Checkpoint 3: {said}."


def test_a_file_that_is_gone_is_deleted() -> None:
    assert files_back((), ("one.txt",)) == "1 file deleted"
    assert files_back(("a", "b"), ("one.txt",)) == "2 files restored, 1 file deleted"
    assert files_back((), ()) == "0 files restored"

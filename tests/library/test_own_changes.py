"""What a task says that it changed is what the review shows and a way back takes back, whoever was asked."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from treadle import Treadle
from treadle.app.checkpoints.points import Points
from treadle.app.compose import open_store
from treadle.app.history.restoring_turns import go_back
from treadle.app.reports.session_review import open_review
from treadle.library import Question
from treadle.protocol.checkpoints import Restore
from treadle.providers.scripted.script import MakeCall
from treadle.testing import call, scripted_model

BOTH = (call("write_to_file", path="a.txt", content="a\n"), call("write_to_file", path="b.txt", content="b\nb\n"))
RUN = call("execute_command", command="echo c > c.txt")
BACK = (call("write_to_file", path="a.txt", content="other\n"), call("write_to_file", path="a.txt", content="first\n"))
DONE = call("attempt_completion", result="Done.")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    (made := tmp_path / "folder").mkdir()
    return made


@pytest.mark.sample(4)
@pytest.mark.parametrize("mode", ["ask", "edits"])
@pytest.mark.parametrize(
    ("steps", "changed"),
    [
        ([BOTH], {("a.txt", 1, 0), ("b.txt", 2, 0)}),
        ([(*BOTH, RUN)], {("a.txt", 1, 0), ("b.txt", 2, 0), ("c.txt", 1, 0)}),
        ([(RUN, *BOTH)], {("a.txt", 1, 0), ("b.txt", 2, 0), ("c.txt", 1, 0)}),
        ([BOTH, (RUN,)], {("a.txt", 1, 0), ("b.txt", 2, 0), ("c.txt", 1, 0)}),
        ([BOTH, BACK], {("a.txt", 1, 0), ("b.txt", 2, 0)}),
    ],
    ids=["two edits", "and a command", "a command first", "two steps", "changed back and forth"],
)
async def test_a_task_its_review_and_a_way_back_agree(
    folder: Path, steps: Sequence[Sequence[MakeCall]], changed: set[tuple[str, int, int]], mode: str
) -> None:
    asked: list[Question] = []

    def approve(question: Question) -> bool:
        (folder / f"by the user {len(asked)}.txt").write_text("mine\n")
        asked.append(question)
        return True

    model = scripted_model(*(list(step) for step in steps), DONE)
    async with Treadle(folder, model=model, mode=mode, approve=approve) as t:
        result = await t.run("Work.")
        session_id = t.session_id
    assert (result.ok, result.outcome.exact) == (True, True)
    assert {(Path(one.path).name, one.added, one.removed) for one in result.changes} == changed
    store = open_store()
    try:
        review = open_review(store, store.find(session_id))
        assert review is not None
        own = {(one.path, one.added, one.removed) for one in review.files if one.own}
        review.close()
    finally:
        store.close()
    theirs = {file.name for file in folder.iterdir() if file.name.startswith("by the user")}
    assert (own, bool(asked)) == (changed, mode == "ask" or bool(theirs))
    back = await go_back(session_id, Restore(checkpoint=1))
    assert ({file.name for file in folder.iterdir()}, back.result.conflicts) == (theirs, ())


async def test_from_the_middle_of_a_step_the_conversation_goes_back_to_its_beginning(folder: Path) -> None:
    model = scripted_model(list(BOTH), DONE)
    async with Treadle(folder, model=model, approve=lambda _: bool((folder / "mine.txt").write_text("mine\n"))) as t:
        await t.run("Work.")
        session_id = t.session_id
    store = open_store()
    try:
        points = Points(store, session_id)
        taken = [(one.data.moment.value, one.data.files) for one in points.checkpoints]
        places = [points.conversation_at(one.data.n) for one in points.checkpoints]
    finally:
        store.close()
    assert taken == [("before", 0), ("before", 1), ("after", 1), ("after", 1)]
    assert places[0] == places[1] == places[2] < places[3]

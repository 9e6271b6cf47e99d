"""What a subagent changed comes back: the end of the turn counts it once, and what was not applied is said."""

from pathlib import Path
from typing import Any

import pytest

from tests.app.subagents.families import Family, call, events_of, family
from treadle.present.child_words import child_note
from treadle.protocol.children import ChildEnded
from treadle.protocol.notifications import ChildChanged
from treadle.protocol.permissions import Mode, OptionKind
from treadle.providers.scripted.script import Expectation, SayText, Texts, Turn

OF_CHILD = Texts(contains=("You are a subagent",))
LINES = "1\n2\n3\n"


def turns(*words: str) -> tuple[Turn, ...]:
    """Workers change a line, each in its copy, to another word."""
    tasks = [{"prompt": f"Write {word}.", "agent": "worker"} for word in words]

    def edit(word: str) -> Turn:
        diff = f"<<<<<<< SEARCH\n2\n=======\n{word}\n>>>>>>> REPLACE\n"
        of_task = Expectation(system=OF_CHILD, last_user=Texts(contains=(f"Write {word}.",)), assistant_messages=0)
        return Turn(when=of_task, items=(call("replace_in_file", path="a.txt", diff=diff),))

    return (
        *map(edit, words),
        *(Turn(when=Expectation(system=OF_CHILD), items=(SayText(text="Changed."),)) for _ in words),
        Turn(when=Expectation(assistant_messages=0), items=(call("use_subagents", tasks=tasks),)),
        Turn(items=(SayText(text="All is done."),)),
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = (tmp_path / "ws").resolve()
    made.mkdir()
    (made / "a.txt").write_text(LINES)
    return made


def notes_of(own: Family) -> list[str]:
    """What a person reads of the ends of the subagents."""
    return [child_note(one) for one in own.heard if isinstance(one, ChildChanged) and one.outcome is not None]


async def test_the_end_of_the_turn_counts_what_came_in_once(folder: Path) -> None:
    async with family(folder, *turns("two"), mode=Mode.EDITS) as own:
        outcome = await own.turn()
    assert (folder / "a.txt").read_text() == LINES.replace("2", "two")
    assert [(Path(one.path).name, one.added, one.removed) for one in outcome.changes] == [("a.txt", 1, 1)]
    (note,) = notes_of(own)
    assert "1 file changed" in note
    assert "treadle copies" not in note


@pytest.mark.parametrize(
    ("answer", "meanwhile", "said"),
    [
        ({"option": OptionKind.REJECT_ONCE}, LINES, "1 file changed, not applied (you said no)"),
        ({"option": OptionKind.REJECT_ONCE, "text": "Later."}, LINES, "not applied (you said no: Later)"),
        ({"option": OptionKind.ALLOW_ONCE}, "1\nmine\n", "not applied (The workspace changed since this was planned)"),
    ],
    ids=["no", "no, with words", "changed meanwhile"],
)
async def test_what_is_not_applied_is_said_to_the_person_with_the_way_to_it(
    folder: Path, answer: dict[str, Any], meanwhile: str, said: str
) -> None:
    async with family(folder, *turns("two"), mode=Mode.ASK) as own:
        own.first = [{"option": OptionKind.ALLOW_ONCE}]  # in its copy
        own.meanwhile = lambda: (folder / "a.txt").write_text(meanwhile)
        outcome = await own.turn(**answer)
    (ended,) = events_of(ChildEnded)
    (note,) = notes_of(own)
    assert said in note
    assert f"treadle copies apply {ended.session_id}" in note
    assert outcome.changes == ()
    assert (folder / "a.txt").read_text() == meanwhile


async def test_what_two_changed_otherwise_is_said_of_the_second(folder: Path) -> None:
    async with family(folder, *turns("two", "zwei"), mode=Mode.EDITS) as own:
        outcome = await own.turn()
    assert len(outcome.changes) == 1
    first, second = notes_of(own)
    assert "treadle copies" not in first
    assert "not applied (a.txt: changed here too, in the same lines): treadle copies apply" in second

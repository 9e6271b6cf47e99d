"""Skills with `context: fork`: a subagent follows them, with a window of its own and the rights of its session."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.app.subagents.families import call, events_of, family
from treadle.protocol.children import ChildEnded, ChildOutcome, ChildStarted
from treadle.protocol.events import CallFinished, SessionStarted
from treadle.protocol.permissions import Mode, OptionKind
from treadle.protocol.sealed import ResultMade
from treadle.protocol.tools import Outcome
from treadle.providers.scripted.script import Expectation, MakeCall, SayText, Texts, Turn

FOLLOWED = Expectation(conversation=Texts(contains=("SKILL-TEXT",)), assistant_messages=0)


@pytest.fixture
def skill(folder: Path) -> Path:
    place = folder / ".agents/skills/survey"
    place.mkdir(parents=True)
    return place / "SKILL.md"


def write(skill: Path, *header: str) -> None:
    lines = "\n".join(("name: survey", "description: Surveys.", "context: fork", *header))
    skill.write_text(f"---\n{lines}\n---\nSKILL-TEXT about $ARGUMENTS.\n")


def turns(*followed: Turn, arguments: str = "a.py") -> tuple[Turn, ...]:
    return (
        *followed,
        Turn(
            when=Expectation(assistant_messages=0),
            items=(MakeCall(name="use_skill", arguments={"name": "survey", "arguments": arguments}),),
        ),
        Turn(when=Expectation(assistant_messages=1), items=(SayText(text="All told."),)),
    )


def then(*items: Any, steps: int) -> Turn:
    asked = Expectation(conversation=Texts(contains=("SKILL-TEXT",)), assistant_messages=steps)
    return Turn(when=asked, items=items)


async def test_a_subagent_follows_the_skill_and_its_answer_alone_comes_back(folder: Path, skill: Path) -> None:
    write(skill, "agent: Explore")
    script = turns(then(call("read_file", path="a.py"), steps=0), then(SayText(text="It returns 1."), steps=1))
    async with family(folder, *script, mode=Mode.AUTO) as own:
        ended = await own.turn()
    assert own.result.outcome is Outcome.OK
    assert "It returns 1." in own.text
    assert "SKILL-TEXT" not in own.text
    assert [(one.agent, one.task) for one in events_of(ChildStarted)] == [("explore", "Skill survey a.py")]
    assert [one.outcome for one in events_of(ChildEnded)] == [ChildOutcome.DONE]
    _, child = events_of(SessionStarted)
    assert child.mode is Mode.PLAN
    assert not child.inherits
    assert ended.usage.input_tokens > 0


async def test_what_it_writes_is_approved_as_that_of_any_subagent(folder: Path, skill: Path) -> None:
    write(skill)
    script = turns(
        then(call("write_to_file", path="b.py", content="x = 1\n"), steps=0), then(SayText(text="Written."), steps=1)
    )
    async with family(folder, *script, mode=Mode.EDITS) as own:
        await own.turn(option=OptionKind.ALLOW_ONCE)
    assert (folder / "b.py").read_text() == "x = 1\n"
    assert [one.path for one in own.result.changes] == [str(folder / "b.py")]


@pytest.mark.parametrize(
    ("header", "mode", "says"),
    [
        ((), Mode.PLAN, "plan mode changes nothing"),
        (("agent: nobody",), Mode.EDITS, "There is no agent 'nobody'"),
    ],
)
async def test_it_may_do_no_more_than_its_session(
    folder: Path, skill: Path, header: Sequence[str], mode: Mode, says: str
) -> None:
    write(skill, *header)
    script = turns(
        then(call("write_to_file", path="b.py", content="x"), steps=0), then(SayText(text="Not done."), steps=1)
    )
    async with family(folder, *script, mode=mode) as own:
        await own.turn()
    assert not (folder / "b.py").exists()
    assert says in str([one.result for kind in (CallFinished, ResultMade) for one in events_of(kind)])


async def test_a_subagent_that_is_cut_off_is_not_told_as_done(folder: Path, skill: Path) -> None:
    write(skill, "agent: short")
    agent = folder / ".agents/agents/short.md"
    agent.parent.mkdir()
    agent.write_text("---\nname: short\ndescription: d\ntools: Read\nmaxTurns: 1\n---\nBe short.\n")
    script = turns(then(call("read_file", path="a.py"), steps=0), then(SayText(text="More."), steps=1))
    async with family(folder, *script) as own:
        await own.turn()
    assert own.result.outcome is Outcome.FAILED
    assert [one.outcome for one in events_of(ChildEnded)] == [ChildOutcome.LIMIT]


async def test_the_user_enters_one_that_the_model_does_not_begin_by_itself(folder: Path, skill: Path) -> None:
    write(skill, "agent: Explore", "disable-model-invocation: true")
    script = turns(then(SayText(text="It returns 1."), steps=0))
    async with family(folder, *script) as own:
        await own.turn("Look around.")
        assert own.result.outcome is Outcome.INVALID
    async with family(folder, *script) as own:
        await own.turn("/survey a.py")
        assert own.result.outcome is Outcome.OK
        assert "It returns 1." in own.text

"""The session as plain lines: questions of every kind, and when a line answers one."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import pytest
from msgspec.structs import replace

from tests.fakes.clock import run_at_once
from tests.tui.asked import EDIT, EVERY_KIND
from tests.tui.drawing import ran
from tests.tui.own_clock import FakeLive
from treadle.present.items import ThoughtItem
from treadle.protocol.attach import Stamped
from treadle.protocol.events import Answer, SetModel
from treadle.protocol.messages import Message, Role, Text
from treadle.protocol.models import ErrorKind, ModelChoice, ModelError, ToolProtocol
from treadle.protocol.notifications import (
    CallChanged,
    CallStatus,
    MessageDone,
    ModeChanged,
    Notice,
    Notification,
    PromptDelivered,
    QuestionAsked,
    RetryScheduled,
    TurnEnded,
    TurnOutcome,
    TurnStarted,
    TurnStop,
)
from treadle.protocol.permissions import Mode, OptionKind, Question, QuestionKind
from treadle.protocol.tools import Outcome, Preview, ToolCall, ToolKind, result_text
from treadle.protocol.usage import Usage
from treadle.tui.paint.printed_items import DiffItem
from treadle.tui.question.asked import FIELDS, Asking, GivenAnswer, ShowWhole, Stage, choices
from treadle.tui.question.dialog import QUIET_SECONDS
from treadle.tui.reader.numbered import NotUnderstood, asked_lines, opening, take_line
from treadle.tui.reader.reader_surface import Reader
from treadle.tui.session.surface import Surface

YES = (OptionKind.ALLOW_ONCE, OptionKind.ALLOW_ALWAYS)
ROOTS = ("/project",)


@pytest.mark.parametrize("question", EVERY_KIND.values(), ids=list(EVERY_KIND))
def test_every_question_is_written_with_its_choices_and_without_control_characters(question: Question) -> None:
    asking, lines = opening(question, Mode.ASK, ROOTS)
    text = "\n".join(lines)
    assert text.startswith("Question. ")
    assert all(char == "\n" or char.isprintable() for char in text)
    assert " " * 50 not in text, "nothing is moved to the end of a very wide screen"
    if asking.field:
        assert text.endswith("Type your answer.")
    else:
        assert f"Type a number from 1 to {len(choices(asking))} and press Enter." in text
        assert all(f"\n{number}. " in text for number in range(1, len(choices(asking)) + 1))


@pytest.mark.parametrize("question", EVERY_KIND.values(), ids=list(EVERY_KIND))
@pytest.mark.parametrize(
    "line",
    [
        "",
        "y",
        "yes",
        "n",
        "0",
        "99",
        "1 2",
        "1.",
        "²",
        "also 2",
        "１",
        "-1",
        " ",
        "99+",
        "+",
        "+1",
        "1 +",
        "1+1",
        "1+ and",
    ],
)
def test_only_the_number_of_a_choice_answers(question: Question, line: str) -> None:
    asking, _ = opening(question, Mode.ASK, ROOTS)
    if not asking.field:
        assert take_line(asking, line) == NotUnderstood()


@pytest.mark.parametrize("question", EVERY_KIND.values(), ids=list(EVERY_KIND))
def test_every_choice_leads_to_an_answer_and_danger_only_with_yes(question: Question) -> None:
    asking, _ = opening(question, Mode.ASK, ROOTS)
    for number in range(1, 1 if asking.field else len(choices(asking)) + 1):
        taken = take_line(asking, str(number))
        steps = 0
        while isinstance(taken, Asking) and steps < 9:
            assert asked_lines(taken, ROOTS)
            if taken.stage is Stage.SURE:
                again = take_line(taken, "y")
                assert isinstance(again, Asking)
                assert again.stage is Stage.LIST
            sends = str(1 + (len(question.options) if question.multiple and taken.ticked else 0))
            taken = take_line(taken, "yes" if taken.stage in FIELDS else "2" if taken.stage is Stage.RULE else sends)
            steps += 1
        if isinstance(taken, ShowWhole):
            continue
        assert isinstance(taken, GivenAnswer), (number, taken)
        if asking.danger and taken.answer.option in YES:
            assert steps == 1


def test_a_question_without_choices_takes_words() -> None:
    question = next(one for one in EVERY_KIND.values() if one.kind is QuestionKind.GUIDANCE)
    asking, lines = opening(question, Mode.ASK, ROOTS)
    assert lines[-1] == "Type your answer."
    given = take_line(asking, "use tabs")
    assert isinstance(given, GivenAnswer)
    assert given.answer.text == "use tabs"


@pytest.mark.parametrize(
    ("begun", "lines", "pause", "answered", "draft"),
    [
        ("", ["1"], 0.79, False, "1"),
        ("", ["1"], 0.81, True, ""),
        ("al", ["1"], 0.81, True, "al"),
        ("al", ["so 2"], 0.81, False, "also 2"),
        ("", ["1", ""], 5.0, False, "1\n"),
        ("", ["y"], 5.0, False, "y"),
        ("", ["!ls"], 5.0, False, ""),
    ],
)
def test_only_a_line_by_itself_after_a_pause_answers_and_nothing_is_lost(
    begun: str, lines: list[str], pause: float, answered: bool, draft: str
) -> None:
    async def work() -> None:
        live, written = FakeLive(), list[str]()
        reader = Reader(live.as_live(Path("/project")), write=written.append, begun=lambda: begun)
        live.surface = cast("Surface", reader)
        tasks = [asyncio.create_task(reader.outbox.run()), asyncio.create_task(reader.own.run())]
        reader.hear(Stamped(notification=TurnStarted(turn=1)))
        reader.hear(Stamped(notification=QuestionAsked(question=EDIT)))
        await asyncio.sleep(pause)
        reader.entered(lines)
        await asyncio.sleep(1)
        assert [isinstance(sent.op, Answer) for sent in live.sent] == [True] * answered
        assert live.commands == (["ls"] if lines == ["!ls"] else [])
        kept = [text for text in "".join(written).split("\n") if text.startswith("Kept as your draft")]
        assert bool(kept) == bool(draft)
        assert not draft or f"Kept as your draft, not sent: {draft}".rstrip() in "".join(written)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    run_at_once(work(), outside=True)


@pytest.mark.parametrize("question", EVERY_KIND.values(), ids=list(EVERY_KIND))
def test_a_plus_asks_for_words_that_go_with_a_choice_and_danger_still_wants_yes(question: Question) -> None:
    asking, _ = opening(question, Mode.ASK, ROOTS)
    for number in range(1, 1 if asking.field else len(choices(asking)) + 1):
        commented = take_line(asking, f"{number}+")
        if isinstance(commented, NotUnderstood):
            continue
        assert isinstance(commented, Asking)
        assert commented.field, "nothing is answered yet"
        taken = take_line(commented, "but keep it short")
        if isinstance(taken, Asking):
            assert taken.stage is Stage.SURE
            taken = take_line(taken, "yes")
        assert isinstance(taken, GivenAnswer)
        assert taken.answer.text == "but keep it short"
    if question.kind is QuestionKind.PERMISSION:
        assert not isinstance(take_line(asking, "1+"), NotUnderstood)


def test_a_list_takes_its_number_once_and_a_question_closes_it() -> None:
    async def work() -> None:
        live, written = FakeLive(), list[str]()
        reader = Reader(live.as_live(Path("/project")), write=written.append, begun=lambda: "")
        reader.lists._aside.start = lambda work, done, instead: done(work())  # type: ignore[method-assign]
        live.surface = cast("Surface", reader)
        post = asyncio.create_task(reader.outbox.run())

        async def enters(line: str) -> None:
            await asyncio.sleep(QUIET_SECONDS + 0.1)
            reader.entered([line])
            await asyncio.sleep(0.1)

        await enters("/model")
        assert "\n2. two - Fake, " in "".join(written)
        reader.entered(["2"])
        assert "Kept as your draft, not sent: 2" in "".join(written)
        await enters("2 low")
        assert [sent.op for sent in live.sent] == [
            SetModel(choice=ModelChoice(model="fake/two", tool_protocol=ToolProtocol.NATIVE))
        ]
        assert not reader.lists.open
        await enters("/model")
        reader.hear(Stamped(notification=TurnStarted(turn=1)))
        reader.hear(Stamped(notification=QuestionAsked(question=EDIT)))
        assert not reader.lists.open
        await enters("1")
        assert [isinstance(sent.op, Answer) for sent in live.sent] == [False, True]
        await enters("/resume")
        assert "Another session cannot be opened from here." in "".join(written)
        post.cancel()
        await asyncio.gather(post, return_exceptions=True)

    run_at_once(work(), outside=True)


def test_what_is_asked_about_is_read_out_whole_and_no_key_that_is_not_there_is_named() -> None:
    async def work() -> None:
        live, written = FakeLive(), list[str]()
        reader = Reader(live.as_live(Path("/project")), write=written.append, begun=lambda: "")
        text = "".join(f"+line {number}\n" for number in range(200))
        output = "".join(f"row {number}\n" for number in range(50))
        reader.show(
            DiffItem(f"--- a/x\n+++ b/x\n@@ -0,0 +1,200 @@ def f\n{text}"),
            ran("make", output=output),
            ThoughtItem("hm", seconds=3.0),
        )
        said = "".join(written)
        assert all(f"line {number}\n" in said for number in range(200))
        assert "lines above\n" in said
        assert "Thought for 3 s\n" in said
        assert "ctrl-o" not in said
        assert " " * 50 not in said

    run_at_once(work(), outside=True)
    _, lines = opening(EDIT, Mode.ASK, ROOTS)
    assert "2. Yes, and all edits in this project this session" in lines


def test_a_gap_that_a_command_has_is_not_changed() -> None:
    command = f"ls {' ' * 2_000} && rm -rf /"
    question = EVERY_KIND["command"]
    assert question.preview is not None
    preview = replace(question.preview, text=command)
    _, lines = opening(replace(question, preview=preview, arguments={"command": command}), Mode.ASK, ROOTS)
    assert any(command in row for row in lines)


CALL = ToolCall(id="c", name="run", arguments={})
LS = CallChanged(call=CALL, kind=ToolKind.EXECUTE, status=CallStatus.RUNNING, preview=Preview(title="Run", text="ls"))
OVERLOADED = ModelError(kind=ErrorKind.OVERLOADED, message="Too busy.")
HEARD = (
    ModeChanged(mode=Mode.EDITS),
    TurnStarted(turn=1),
    PromptDelivered(prompt_id="p", content=(Text(text="go"),), by="mcp:cursor"),
    RetryScheduled(attempt=1, seconds=3, error=OVERLOADED),
    MessageDone(step=1, message=Message(role=Role.ASSISTANT, content=(Text(text="I look.\n\n- one"),)), usage=Usage()),
    LS,
    replace(LS, status=CallStatus.FINISHED, result=result_text(Outcome.FAILED, "Exit status 3.\nno such file")),
    TurnEnded(outcome=TurnOutcome(stop=TurnStop.END_TURN)),
)


def lines_of(past: Sequence[Notification], live: Sequence[Notification]) -> list[str]:
    """What a reader writes of what happened before, and of what it hears, without its first and last lines."""

    async def work() -> str:
        fake, written = FakeLive(past=[Stamped(notification=one, at=5_000) for one in past]), list[str]()
        reader = Reader(fake.as_live(Path("/project")), write=written.append, begun=lambda: "")
        for one in live:
            reader.hear(Stamped(notification=one, at=5_000))
        return "".join(written)

    return run_at_once(work(), outside=True).splitlines()


def test_what_happened_before_is_read_out_in_the_words_in_which_it_was() -> None:
    frame = lines_of((), ())
    live = [line for line in lines_of((), HEARD) if line not in frame and not line.startswith("Running:")]
    assert [line for line in lines_of(HEARD, ()) if line not in frame] == live
    assert live == [
        "Mode is now edits: file edits run without asking.",
        "From cursor, over MCP:",
        "You: go",
        "The model did not answer. Trying again in 3 s.",
        "I look.",
        "",
        "- one",
        "Failed: Run ls  exit 3",
        "  no such file",
        "End: Done - 0 steps - $0.00 - 0 s",
    ]


def test_only_the_end_of_a_long_past_is_read_out_and_how_much_came_before() -> None:
    notices = [Notice(text=f"notice {number}") for number in range(100)]
    lines = lines_of(notices, ())
    assert "40 earlier items of this session: treadle show s" in lines
    assert [line for line in lines if line.startswith("notice")] == [f"notice {number}" for number in range(40, 100)]

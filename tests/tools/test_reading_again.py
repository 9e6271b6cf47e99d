"""read_file: what the conversation still holds is not sent again."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.fakes.messages import add_user
from tests.tools.calls import call, text

from treadle.context.transcript import Transcript
from treadle.protocol.messages import Message, Role, Text, ToolResult, UserContent
from treadle.protocol.tools import CallResult
from treadle.workspace.workspace import Conversation, Workspace, open_workspace

LINES = "".join(f"a line of some length, number {n}\n" for n in range(1, 101))


class Talk:
    """A conversation that results go into, as the loop does it."""

    def __init__(self) -> None:
        self.transcript = Transcript()
        self.say("Do it.")

    def say(self, *prompts: str) -> None:
        contents: list[tuple[UserContent, ...]] = [(Text(text=prompt),) for prompt in prompts]
        add_user(self.transcript, results=(), prompts=contents, notes=(), environment="")

    def answer(self) -> None:
        self.transcript.add_assistant(Message(role=Role.ASSISTANT, content=(Text(text="Next."),)))

    def deliver(self, result: CallResult) -> None:
        block = ToolResult(call_id="1", name="read_file", content=result.content, is_error=result.is_error)
        add_user(self.transcript, results=(block,), prompts=(), notes=(), environment="")


@pytest.fixture
def talk() -> Talk:
    return Talk()


@pytest.fixture
async def workspace(tmp_path: Path, talk: Talk) -> AsyncIterator[Workspace]:
    (tmp_path / "root").mkdir()
    conversation = Conversation(holds=talk.transcript.holds)
    workspace = open_workspace(tmp_path / "root", spool=tmp_path / "spool", conversation=conversation)
    Path(workspace.root, "a.py").write_text(LINES)
    yield workspace
    await workspace.close()


async def _read(workspace: Workspace, talk: Talk, **arguments: object) -> str:
    result = await call(workspace, "read_file", **{"path": "a.py", **arguments})
    talk.deliver(result)
    return "".join(block.text for block in result.content if isinstance(block, Text))


async def test_an_unchanged_file_comes_as_one_line_as_often_as_it_is_read_again(
    workspace: Workspace, talk: Talk
) -> None:
    first = await _read(workspace, talk)
    assert first.startswith("1 | a line")
    for _ in range(3):
        assert await _read(workspace, talk) == "[a.py, lines 1-100: unchanged since you read them, see above]"
    both = await _read(workspace, talk, path="missing", other_paths=["a.py"])
    assert both.endswith("=== a.py\n[a.py, lines 1-100: unchanged since you read them, see above]")


async def test_each_range_is_known_for_itself(workspace: Workspace, talk: Talk) -> None:
    await _read(workspace, talk, start_line=1, end_line=20)
    assert (await _read(workspace, talk, start_line=11, end_line=30)).startswith("11 | ")
    assert (await _read(workspace, talk, start_line=1, end_line=20)).startswith("[a.py, lines 1-20: unchanged")


async def test_a_change_elsewhere_in_the_file_does_not_matter_to_the_lines_that_are_read(
    workspace: Workspace, talk: Talk
) -> None:
    first = await _read(workspace, talk, start_line=1, end_line=20)
    path = Path(workspace.root, "a.py")
    path.write_text(LINES.replace("number 90", "number ninety"))
    assert (await _read(workspace, talk, start_line=1, end_line=20)).startswith("[a.py, lines 1-20: unchanged")
    path.write_text(LINES.replace("number 9\n", "number nine\n"))
    assert "number nine" in await _read(workspace, talk, start_line=1, end_line=20)
    path.write_text(LINES)
    assert await _read(workspace, talk, start_line=1, end_line=20) == first


async def test_after_an_edit_that_was_taken_back_the_file_is_sent_again(workspace: Workspace, talk: Talk) -> None:
    first = await _read(workspace, talk)
    for content in ("other\n", LINES):
        await call(workspace, "write_to_file", path="a.py", content=content)
    assert await _read(workspace, talk) == first


async def test_after_the_model_heard_of_a_change_by_others_the_file_is_sent_again(
    workspace: Workspace, talk: Talk
) -> None:
    first, path = await _read(workspace, talk), Path(workspace.root, "a.py")
    path.write_text("other\n")
    os.utime(path, ns=(0, 0))
    assert [one.path for one in workspace.seen.news()] == [str(path)]
    path.write_text(LINES)
    assert await _read(workspace, talk) == first


async def test_what_never_reached_the_conversation_is_sent_in_full(workspace: Workspace, talk: Talk) -> None:
    first = await text(workspace, "read_file", path="a.py")  # interrupted, or its reply was broken off
    assert await _read(workspace, talk) == first


async def test_what_left_the_conversation_is_sent_in_full(workspace: Workspace, talk: Talk) -> None:
    talk.answer()
    first = await _read(workspace, talk)
    for _ in range(4):
        talk.answer()
        talk.say("Go on.")
    assert (await _read(workspace, talk)).startswith("[a.py, lines 1-100: unchanged")
    talk.transcript.drop(talk.transcript.droppable())
    assert await _read(workspace, talk) == first


async def test_another_file_with_the_same_text_is_sent_in_full(workspace: Workspace, talk: Talk) -> None:
    first = await _read(workspace, talk)
    Path(workspace.root, "b.py").write_text(LINES)
    assert await _read(workspace, talk, path="b.py") == first


async def test_what_is_as_short_as_the_note_is_sent_again(workspace: Workspace, talk: Talk) -> None:
    Path(workspace.root, "short").write_text("x\n")
    for _ in range(2):
        assert await _read(workspace, talk, path="short") == "1 | x"

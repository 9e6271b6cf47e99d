"""What happens when a tool fails, floods, is overtaken by somebody else's change, or is refused."""

import json
import signal
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from tests.e2e.faults.driving import attended, block, make, results, run, work
from tests.e2e.running import log_of
from treadle.app.errors.exits import Exit
from treadle.engine.core.texts import SKIPPED
from treadle.protocol.codec import encode
from treadle.protocol.errors import ToolError
from treadle.protocol.events import CallFinished
from treadle.protocol.permissions import OptionKind, QuestionKind
from treadle.protocol.tools import Outcome
from treadle.workspace.files.saving import save
from treadle.workspace.files.text_files import sha256

DRIVER = (sys.executable, str(Path(__file__).with_name("fault_driver.py")))
MEBIBYTE = 1024 * 1024


def outcomes(home: Path) -> list[Outcome]:
    """How the calls of the only session ended."""
    return [event.data.result.outcome for event in log_of(home) if isinstance(event.data, CallFinished)]


async def test_a_tool_that_raises_is_an_error_result_and_its_trace_is_in_the_programs_log(tmp_path: Path) -> None:
    done = await work(tmp_path, make("list_files", path="."), command=(*DRIVER, "tool-raises"))
    assert (done.ended.code, done.ended.out) == (Exit.DONE, "Done.\n"), done.ended.err
    assert done.results == [
        "list_files failed inside Treadle: RuntimeError: the disk of list_files is upside down. Try another way."
    ]
    assert "Traceback" not in done.sent + done.ended.out + done.ended.err
    log = (tmp_path / "home" / "treadle.log").read_text()
    assert "Traceback" in log
    assert "RuntimeError: the disk of list_files is upside down" in log


@pytest.mark.parametrize("form", ["json", "stream-json"])
async def test_what_a_tool_prints_itself_is_not_in_json_output(tmp_path: Path, form: str) -> None:
    printing = (*DRIVER, "tool-prints")
    done = await work(tmp_path, make("list_files", path="."), flags=("--output-format", form), command=printing)
    assert [json.loads(line)["type"] for line in done.ended.out.splitlines()][-1] == "result"
    assert "noise of Python\n" in done.ended.err
    assert "noise of a library\n" in done.ended.err


async def test_of_80_mebibytes_the_model_reads_head_and_tail_and_the_rest_is_in_a_file(tmp_path: Path) -> None:
    line = f"echo first; head -c {80 * MEBIBYTE} /dev/zero | tr '\\0' x | fold -w 1023; printf '\nlast\n'"
    done = await work(tmp_path, run(line))
    assert done.ended.code == Exit.DONE, done.ended.err
    (result,) = done.results
    (spool,) = (tmp_path / "home" / "output").glob("*/*.txt")
    assert result.startswith("Exit status 0.\nfirst\nxxx")
    assert result.endswith("xxx\nlast")
    assert f"characters left out; the whole output (first 67,108,864 bytes) is in {spool} ...]" in result
    assert len(result) < 33 * 1024
    assert spool.stat().st_size == 64 * MEBIBYTE


async def test_bytes_that_are_no_text_are_replaced_or_escaped_and_the_log_stays_valid(tmp_path: Path) -> None:
    done = await work(
        tmp_path, run(r"printf 'a\377\376\0\033]0;title\007b\n'"), flags=("--output-format", "stream-json")
    )
    assert done.results == ["Exit status 0.\na\ufffd\ufffd\\x00b"]
    assert [json.loads(line)["type"] for line in done.ended.out.splitlines()][-1] == "result"
    assert "\x1b" not in done.ended.out + done.ended.err
    for event in log_of(tmp_path / "home"):
        assert b"\0" not in encode(event)


async def test_a_crash_between_the_new_file_and_its_name_leaves_the_old_one_and_the_next_start_tidies_up(
    tmp_path: Path,
) -> None:
    root = tmp_path / "ws"
    root.mkdir()
    (root / "a.txt").write_text("old\n")
    edit = make("replace_in_file", path="a.txt", diff=block("old\n", "new\n"))
    killed = await work(tmp_path, edit, command=(*DRIVER, "killed-before-rename"))
    assert killed.ended.code == -signal.SIGKILL
    (stray,) = root.glob(".treadle-*.tmp")
    assert ((root / "a.txt").read_text(), stray.read_text()) == ("old\n", "new\n")
    again = await work(tmp_path, make("read_file", path="a.txt"))
    assert (again.ended.code, again.results) == (Exit.DONE, ["1 | old"])
    assert [path.name for path in root.iterdir()] == ["a.txt"]


async def test_a_folder_swapped_for_a_link_after_the_approval_is_not_written_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "ws" / "inside").mkdir(parents=True)
    async with attended(tmp_path, monkeypatch, make("write_to_file", path="inside/a.txt", content="x\n")) as session:
        await session.begin()
        question = await session.asked()
        (tmp_path / "ws" / "inside").rmdir()
        (tmp_path / "ws" / "inside").symlink_to(tmp_path / "outside")
        await session.answer(question, OptionKind.ALLOW_ONCE)
        outcome = await session.ended()
    assert (outcome.text, outcome.changes) == ("Done.", ())
    assert list((tmp_path / "outside").iterdir()) == []
    assert outcomes(tmp_path / "home")[0] is Outcome.FAILED


def test_a_link_that_is_swapped_in_at_any_moment_is_never_written_through(tmp_path: Path) -> None:
    inside, outside, kept = tmp_path / "inside", tmp_path / "outside", tmp_path / "kept"
    for folder in (inside, outside):
        folder.mkdir()
        (folder / "a.txt").write_bytes(b"0")
    stop = threading.Event()

    def swap() -> None:
        while not stop.wait(0.0002):
            inside.rename(kept)
            inside.symlink_to(outside)
            inside.unlink()
            kept.rename(inside)

    thread = threading.Thread(target=swap)
    thread.start()
    written = tried = 0
    try:
        while tried < 500 or not written:
            tried += 1
            with suppress(ToolError):
                save(str(inside / "a.txt"), b"%d" % (written + 1), expected=sha256(b"%d" % written), name="a.txt")
                written += 1
    finally:
        stop.set()
        thread.join()
    assert ((outside / "a.txt").read_bytes(), len(list(outside.iterdir()))) == (b"0", 1)
    assert ((inside / "a.txt").read_bytes(), written > 0) == (b"%d" % written, True)


async def test_two_edits_of_one_file_in_one_reply_are_both_made_one_after_the_other(tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws" / "a.txt").write_text("one\ntwo\n")
    edits = tuple(
        make("replace_in_file", path="a.txt", diff=block(f"{word}\n", f"{number}\n"))
        for word, number in (("one", 1), ("two", 2))
    )
    done = await work(tmp_path, edits)
    assert done.ended.code == Exit.DONE, done.ended.err
    assert outcomes(tmp_path / "home")[:2] == [Outcome.OK, Outcome.OK], done.results
    assert (tmp_path / "ws" / "a.txt").read_text() == "1\n2\n"


async def test_the_second_of_two_edits_of_the_same_line_is_refused(tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws" / "a.txt").write_text("one\n")
    edits = tuple(make("replace_in_file", path="a.txt", diff=block("one\n", f"{number}\n")) for number in (1, 2))
    done = await work(tmp_path, edits)
    assert outcomes(tmp_path / "home")[:2] == [Outcome.OK, Outcome.FAILED], done.results
    assert (tmp_path / "ws" / "a.txt").read_text() == "1\n"


async def test_a_rejected_call_is_a_result_and_is_not_repeated_nor_are_the_calls_after_it_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = ((run("touch first"), run("touch second")), run("touch third"))
    async with attended(tmp_path, monkeypatch, *steps) as session:
        await session.begin()
        await session.answer(await session.asked(), OptionKind.REJECT_ONCE)
        third = await session.asked()
        first, second = results(session.server)
        await session.answer(third, OptionKind.ALLOW_ONCE)
        await session.ended()
    assert "rejected this call" in first
    assert second == SKIPPED
    assert [path.name for path in (tmp_path / "ws").iterdir()] == ["third"]


async def test_a_call_that_waited_for_an_answer_when_the_program_ended_is_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with attended(tmp_path, monkeypatch, run("touch made")) as session:
        await session.begin()
        question = await session.asked()
        session_id = session.live.id
    assert not (tmp_path / "ws" / "made").exists()
    async with attended(tmp_path, monkeypatch, run("touch made"), resume=session_id) as session:
        again = await session.asked()
        assert (again.text, again.call_id) == (question.text, question.call_id)
        assert not (tmp_path / "ws" / "made").exists()
        await session.answer(again, OptionKind.ALLOW_ONCE)
        assert (await session.ended()).text == "Done."
    assert (tmp_path / "ws" / "made").exists()


async def test_what_changed_after_the_approval_is_not_what_was_approved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ws").mkdir()
    path = tmp_path / "ws" / "a.txt"
    path.write_text("one\ntwo\n")
    async with attended(
        tmp_path, monkeypatch, make("replace_in_file", path="a.txt", diff=block("one\n", "1\n"))
    ) as session:
        await session.begin()
        question = await session.asked()
        path.write_text("one\nthree\n")
        await session.answer(question, OptionKind.ALLOW_ONCE)
        await session.ended()
    assert path.read_text() == "one\nthree\n"
    assert outcomes(tmp_path / "home")[0] is Outcome.FAILED


async def test_an_approval_does_not_hold_for_another_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = (run("touch a"), run("touch b"))
    async with attended(tmp_path, monkeypatch, *steps) as session:
        await session.begin()
        first = await session.asked()
        await session.answer(first, OptionKind.ALLOW_ONCE)
        second = await session.asked()
        assert first.decision is not None
        assert second.decision is not None
        assert first.decision.digest != second.decision.digest
        assert not (tmp_path / "ws" / "b").exists()
        await session.answer(second, OptionKind.REJECT_ONCE)
        await session.ended()
    assert [path.name for path in (tmp_path / "ws").iterdir()] == ["a"]


async def test_a_call_that_fails_the_same_way_again_and_again_ends_the_turn_or_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = await work(tmp_path, *(make("read_file", path="nowhere.txt") for _ in range(8)))
    assert (done.ended.code, done.ended.out) == (Exit.LOOP, ""), done.ended.err
    assert outcomes(tmp_path / "home") == [Outcome.FAILED] * 5
    steps = tuple(make("read_file", path="nowhere.txt") for _ in range(8))
    async with attended(tmp_path / "attended", monkeypatch, *steps) as session:
        await session.begin()
        question = await session.asked()
    assert (question.kind, outcomes(tmp_path / "attended" / "home")) == (QuestionKind.GUIDANCE, [Outcome.FAILED] * 5)


@pytest.mark.parametrize(("changed", "wrote"), [(False, True), (True, False)])
async def test_after_a_resume_a_file_is_stale_only_if_somebody_changed_it(
    tmp_path: Path, *, changed: bool, wrote: bool
) -> None:
    (tmp_path / "ws").mkdir()
    path = tmp_path / "ws" / "a.txt"
    path.write_text("one\n")
    read = make("read_file", path="a.txt")
    first = (read, make("write_to_file", path="a.txt", content="two\n")) if wrote else (read,)
    await work(tmp_path, *first)
    if changed:
        path.write_text("theirs\n")
    steps = (*first, make("attempt_completion", result="Done."), make("write_to_file", path="a.txt", content="mine\n"))
    await work(tmp_path, *steps, flags=("--continue",))
    assert outcomes(tmp_path / "home")[-2] is (Outcome.FAILED if changed else Outcome.OK)
    assert path.read_text() == ("theirs\n" if changed else "mine\n")

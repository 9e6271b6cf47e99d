"""Files and conversation brought back with the real program: after edits, commands, a kill, and the user's own work."""

import asyncio
import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.process import Ended, Program
from tests.e2e.test_context import call
from treadle.app.errors.exits import Exit
from treadle.protocol.events import CallStarted, Event, Prompt, Source
from treadle.protocol.messages import Text
from treadle.providers.scripted.script import MakeCall, Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer
from treadle.store.sqlite import Store

MODEL = "anthropic-compatible/main"
RESTORING = ("write", "delete", "conflict")


def lay_out(folder: Path) -> tuple[Program, Path]:
    work = folder / "work"
    work.mkdir()
    (folder / "home").mkdir()
    (work / "a.txt").write_text("one\n")
    (work / "own.txt").write_text("mine\n")
    return Program(folder / "home"), work


async def headless(program: Program, work: Path, server: ScriptedServer, *words: str) -> Ended:
    arguments = ("--model", MODEL, "--base-url", server.base_url, "--mode", "full", "--trust")
    return await program.run("-p", *words, *arguments, cwd=work)


def script(*steps: tuple[MakeCall, ...]) -> Script:
    done = Turn(items=(call("attempt_completion", result="Done."),))
    return Script(turns=tuple(turn for step in steps for turn in (Turn(items=step), done)))


def write(path: str, text: str) -> MakeCall:
    return call("write_to_file", path=path, content=text)


def over(path: str, text: str) -> tuple[MakeCall, ...]:
    """Read a file, and write another text over it."""
    return (call("read_file", path=path), write(path, text))


async def listed(program: Program, work: Path, *more: str) -> list[dict[str, Any]]:
    out = (await program.run("checkpoint", "list", "--json", *more, cwd=work)).out
    return [json.loads(line) for line in out.splitlines()]


def tree(work: Path) -> dict[str, str]:
    return {str(one.relative_to(work)): one.read_text() for one in sorted(work.rglob("*")) if one.is_file()}


async def test_edits_and_commands_are_undone_and_what_the_user_did_since_stays(tmp_path: Path) -> None:
    program, work = lay_out(tmp_path)
    before = tree(work)
    turns = script(
        (*over("a.txt", "two\n"), write("new/b.txt", "b\n")),
        (call("execute_command", command="rm own.txt; printf 'c\\n' > c.txt; mkdir d && echo x > d/x.txt"),),
    )
    async with ScriptedServer(turns) as server:
        first = await headless(program, work, server, "Edit.")
        assert first.code == Exit.DONE, first.err
        edited = tree(work)
        second = await headless(program, work, server, "Run.", "--continue")
        assert second.code == Exit.DONE, second.err
    ran = tree(work)
    points = await listed(program, work)
    assert [(one["n"], one["why"]) for one in points] == [
        (1, "before changes"),
        (2, "after changes"),
        (3, "after changes"),
    ]
    assert [(one["files"], one["added"], one["removed"]) for one in points] == [(0, 0, 0), (2, 2, 1), (3, 2, 1)]
    assert set(points[0]) == {"n", "step", "at", "why", "files", "added", "removed", "not_covered"}
    (work / "user.txt").write_text("the user's own\n")
    preview = await program.run("checkpoint", "restore", "2", "--preview", cwd=work)
    assert (preview.code, "own.txt" in preview.out, tree(work) == {**ran, "user.txt": "the user's own\n"}) == (
        0,
        True,
        True,
    )
    asked = await program.run("checkpoint", "restore", "2", cwd=work)
    assert (asked.code, "Add --yes" in asked.err) == (Exit.CONFIG, True)
    done = await program.run("checkpoint", "restore", "2", "--yes", cwd=work)
    assert (done.code, tree(work)) == (0, {**edited, "user.txt": "the user's own\n"}), done.err + done.out
    done = await program.run("checkpoint", "restore", "1", "--yes", cwd=work)
    assert (done.code, tree(work)) == (0, {**before, "user.txt": "the user's own\n"}), done.err + done.out
    newest = (await listed(program, work))[-1]["n"]
    undone = await program.run("checkpoint", "restore", "3", "--yes", cwd=work)
    assert (undone.code, tree(work)) == (0, {**ran, "user.txt": "the user's own\n"}), undone.err
    assert (await listed(program, work))[-1]["n"] > newest
    assert (await program.run("audit", "verify", cwd=work)).code == 0


async def test_a_conflict_is_listed_left_alone_and_the_rest_is_restored(tmp_path: Path) -> None:
    program, work = lay_out(tmp_path)
    async with ScriptedServer(script((*over("a.txt", "two\n"), write("b.txt", "b\n")))) as server:
        assert (await headless(program, work, server, "Edit.")).code == Exit.DONE
    (work / "a.txt").write_text("the user wrote over it\n")
    done = await program.run("checkpoint", "restore", "1", "--yes", "--json", cwd=work)
    assert done.code == Exit.FAILED
    assert [one["path"] for one in json.loads(done.out)["conflicts"]] == [str(work / "a.txt")]
    assert tree(work) == {"a.txt": "the user wrote over it\n", "own.txt": "mine\n"}


async def test_the_conversation_goes_back_with_the_files_and_the_model_reads_nothing_of_what_came_after(
    tmp_path: Path,
) -> None:
    program, work = lay_out(tmp_path)
    turns = script(over("a.txt", "two\n"), (write("a.txt", "three\n"),), (write("z.txt", "z\n"),))
    async with ScriptedServer(turns) as server:
        await headless(program, work, server, "The first task.")
        await headless(program, work, server, "The second task.", "--continue")
        points = await listed(program, work)
        assert [one["n"] for one in points] == [1, 2, 3]
        back = await program.run("checkpoint", "restore", "2", "--both", "--yes", cwd=work)
        assert (back.code, (work / "a.txt").read_text()) == (0, "two\n"), back.err
        again = await headless(program, work, server, "The third task.", "--continue")
        assert again.code == Exit.DONE, again.err
        sent = str(server.requests[-1].body["messages"])
    assert ("The first task." in sent, "The second task." in sent, "The third task." in sent) == (True, False, True)
    shown = await program.run(
        "show", json.loads((await program.run("sessions", "--json", cwd=work)).out)["id"], cwd=work
    )
    assert "The second task." in shown.out, "the log keeps all of it"


async def test_undo_and_rewind_are_commands_too(tmp_path: Path) -> None:
    program, work = lay_out(tmp_path)
    turns = script(over("a.txt", "two\n"), (write("a.txt", "three\n"),))
    async with ScriptedServer(turns) as server:
        await headless(program, work, server, "The first task.")
        await headless(program, work, server, "The second task.", "--continue")
        for expected in ("two\n", "one\n"):
            undone = await headless(program, work, server, "/undo", "--continue")
            assert (undone.code, (work / "a.txt").read_text()) == (Exit.DONE, expected), undone.err
            assert "1 file restored" in undone.err
        nothing = await headless(program, work, server, "/undo", "--continue")
        assert "nothing to undo" in nothing.err + nothing.out
        turns_listed = await headless(program, work, server, "/rewind", "--continue")
        assert "2: The second task." in turns_listed.out
        rewound = await headless(program, work, server, "/rewind 2", "--continue")
        assert rewound.code == Exit.DONE, rewound.err
        assert "2: " not in (await headless(program, work, server, "/rewind", "--continue")).out


@pytest.mark.parametrize(
    ("part", "text", "listed"),
    [("", "two\n", False), (" both", "two\n", False), (" files", "two\n", True), (" conversation", "three\n", False)],
)
async def test_each_part_that_the_help_names_can_be_gone_back_in(
    tmp_path: Path, part: str, text: str, listed: bool
) -> None:
    program, work = lay_out(tmp_path)
    async with ScriptedServer(script(over("a.txt", "two\n"), (write("a.txt", "three\n"),))) as server:
        await headless(program, work, server, "The first task.")
        await headless(program, work, server, "The second task.", "--continue")
        rewound = await headless(program, work, server, f"/rewind 2{part}", "--continue")
        assert rewound.code == Exit.DONE, rewound.err
        assert (work / "a.txt").read_text() == text
        assert ("2: " in (await headless(program, work, server, "/rewind", "--continue")).out) == listed


async def test_work_that_was_undone_does_not_come_back_when_the_next_turn_is_undone(tmp_path: Path) -> None:
    program, work = lay_out(tmp_path)
    turns = script(over("a.txt", "two\n"), (write("b.txt", "b\n"),), (write("c.txt", "c\n"),))
    begun = tree(work)
    async with ScriptedServer(turns) as server:
        for task in ("First.", "Second.", "Third."):
            await headless(program, work, server, task, *(["--continue"] if task != "First." else []))
            undone = await headless(program, work, server, "/undo", "--continue")
            assert (undone.code, tree(work)) == (Exit.DONE, begun), undone.err
        nothing = await headless(program, work, server, "/undo", "--continue")
        assert "nothing to undo" in nothing.err + nothing.out


async def test_an_undo_that_leaves_something_as_it_is_is_no_success(tmp_path: Path) -> None:
    program, work = lay_out(tmp_path)
    async with ScriptedServer(script(over("a.txt", "two\n"))) as server:
        await headless(program, work, server, "The first task.")
        (work / "a.txt").write_text("the user's own\n")
        undone = await headless(program, work, server, "/undo", "--continue")
    assert (undone.code, (work / "a.txt").read_text()) == (Exit.FAILED, "the user's own\n"), undone.err
    assert "a.txt" in undone.err


async def test_what_is_not_covered_is_named_and_never_touched(tmp_path: Path) -> None:
    program, work = lay_out(tmp_path)
    os.mkfifo(work / "pipe")
    (work / ".gitignore").write_text("*.log\n")
    (work / "own.log").write_text("ignored\n")
    async with ScriptedServer(script(over("a.txt", "two\n"))) as server:
        await headless(program, work, server, "Edit.")
    (first, _) = await listed(program, work)
    assert [one for one in first["not_covered"] if "pipe" in one]
    (work / "own.log").write_text("changed\n")
    assert (await program.run("checkpoint", "restore", "1", "--yes", cwd=work)).code == 0
    assert ((work / "own.log").read_text(), (work / "pipe").is_fifo()) == ("changed\n", True)
    assert (work / "a.txt").read_text() == "one\n"


async def test_a_file_that_was_taken_back_can_be_made_anew(tmp_path: Path) -> None:
    program, work = lay_out(tmp_path)
    async with ScriptedServer(script((write("b.txt", "b\n"),), (write("b.txt", "again\n"),))) as server:
        await headless(program, work, server, "The first task.")
        await headless(program, work, server, "/undo", "--continue")
        assert not (work / "b.txt").exists()
        again = await headless(program, work, server, "The second task.", "--continue")
        assert (again.code, (work / "b.txt").read_text()) == (Exit.DONE, "again\n"), again.err


async def test_a_fork_goes_on_by_itself_and_its_checkpoints_are_its_own(tmp_path: Path) -> None:
    program, work = lay_out(tmp_path)
    turns = script(over("a.txt", "two\n"), (write("a.txt", "three\n"),), (write("b.txt", "b\n"),))
    async with ScriptedServer(turns) as server:
        await headless(program, work, server, "The first task.")
        await headless(program, work, server, "The second task.", "--continue")
        (row,) = [json.loads(line) for line in (await program.run("sessions", "--json", cwd=work)).out.splitlines()]
        assert (await program.run("checkpoint", "diff", "1", cwd=work)).code == Exit.DONE
        assert (await program.run("archive", row["id"], cwd=work)).code == Exit.DONE
        assert len(await listed(program, work, row["id"])) == 3
        forked = await program.run("fork", row["id"], "--at", "1", cwd=work)
        assert (forked.code, forked.out.count("\n")) == (0, 1), forked.err
        new = forked.out.strip()
        assert new != row["id"]
        ended = await headless(program, work, server, "In the copy.", "--resume", new)
        assert ended.code == Exit.DONE, ended.err
        sent = str(server.requests[-1].body["messages"])
    assert ("The first task." in sent, "The second task." in sent) == (True, False)
    assert len(await listed(program, work, row["id"])) == 3
    assert len(await listed(program, work, new)) > 2
    assert (await program.run("audit", "verify", cwd=work)).code == 0
    wrong = await program.run("fork", row["id"], "--at", "9", cwd=work)
    assert (wrong.code, "has no turn 9" in wrong.err) == (Exit.FAILED, True)


async def test_after_a_kill_edits_are_brought_back_and_what_nobody_knows_is_a_conflict(tmp_path: Path) -> None:
    program, work = lay_out(tmp_path)
    before = tree(work)
    line = "printf 'half\\n' > own.txt; touch started; sleep 60"
    steps = (*over("a.txt", "two\n"), call("execute_command", command=line, timeout=90))
    async with ScriptedServer(script(steps)) as server:
        arguments = ("--model", MODEL, "--base-url", server.base_url, "--mode", "full", "--trust")
        process = await program.start("-p", "Run.", *arguments, cwd=work)
        while not (work / "started").exists():
            await asyncio.sleep(0.02)
        os.kill(process.pid, signal.SIGKILL)
        await process.communicate()
    (work / "user.txt").write_text("written after the kill\n")
    killed = tree(work)
    preview = await program.run("checkpoint", "restore", "1", "--preview", "--json", cwd=work)
    assert (preview.code, tree(work)) == (0, killed), preview.err
    done = await program.run("checkpoint", "restore", "1", "--yes", "--json", cwd=work)
    assert (done.code, "own.txt" in done.out) == (Exit.FAILED, True), done
    left = {"own.txt": "half\n", "started": "", "user.txt": "written after the kill\n"}
    assert tree(work) == {**before, **left}, done.err + done.out
    restored = json.loads(done.out)
    would = {kind: [one for one in json.loads(preview.out)["paths"] if one["what"] == kind] for kind in RESTORING}
    assert {kind: [one["path"] for one in rows] for kind, rows in would.items()} == {
        "write": restored["written"],
        "delete": restored.get("removed", []),
        "conflict": [one["path"] for one in restored["conflicts"]],
    }
    assert {one["why"] for one in would["conflict"]} == {one["why"] for one in restored["conflicts"]}
    assert all("when the program ended" in one["why"] for one in would["conflict"])


async def test_each_checkpoint_has_its_place_in_the_conversation(tmp_path: Path) -> None:
    program, work = lay_out(tmp_path)
    turns = script(over("a.txt", "two\n"), (write("a.txt", "three\n"),))
    async with ScriptedServer(turns) as server:
        await headless(program, work, server, "The first task.")
        await headless(program, work, server, "The second task.", "--continue")
    for n, gone, cut in ((3, 0, 2), (2, 1, 1), (1, 1, 1)):
        shown = await program.run("checkpoint", "restore", str(n), "--conversation", "--preview", cwd=work)
        assert f"{gone} of 2 turns leave it, and what turn {cut} did after that" in shown.out, (n, shown.out)


async def test_a_message_that_waited_when_the_program_was_killed_does_not_keep_files_from_being_restored(
    tmp_path: Path,
) -> None:
    program, work = lay_out(tmp_path)
    steps = (*over("a.txt", "two\n"), call("execute_command", command="touch started; sleep 60", timeout=90))
    async with ScriptedServer(script(steps)) as server:
        arguments = ("--model", MODEL, "--base-url", server.base_url, "--mode", "full", "--trust")
        process = await program.start("-p", "Run.", *arguments, cwd=work)
        while not (work / "started").exists():
            await asyncio.sleep(0.02)
        os.kill(process.pid, signal.SIGKILL)
        await process.communicate()
    log = Store(program.home / "sessions.db")
    (row,) = log.sessions()
    prompt = Prompt(id="later", content=(Text(text="And then?"),))
    waiting = Event(seq=row.events + 1, at=row.updated_at, source=Source(kind="tui", id="main"), data=prompt)
    await log.append(row.id, [waiting], durable=True)
    log.close()
    done = await program.run("checkpoint", "restore", "1", "--yes", cwd=work)
    assert ((work / "a.txt").read_text(), "cannot be restored" in done.err) == ("one\n", False), done
    assert (await program.run("audit", "verify", cwd=work)).code == 0


async def test_a_session_goes_on_from_an_earlier_step_in_a_copy_of_the_files_as_they_were(tmp_path: Path) -> None:
    program, work = lay_out(tmp_path)
    turns = script(over("a.txt", "two\n"), (write("a.txt", "three\n"),))
    async with ScriptedServer(turns) as server:
        await headless(program, work, server, "The first task.")
        await headless(program, work, server, "The second task.", "--continue")
    (row,) = [json.loads(line) for line in (await program.run("sessions", "--json", cwd=work)).out.splitlines()]
    before = tree(work)
    other = script((), (*over("a.txt", "other\n"), write("c.txt", "c\n")))  # two replies are there already
    async with ScriptedServer(other) as server:
        flags: tuple[str, ...] = ("--model", "anthropic-compatible/other", "--base-url", server.base_url)
        again = await program.run("replay", row["id"], "--from", "3", *flags, "--mode", "full", "--trust", cwd=work)
        assert again.code == Exit.DONE, again.err
        sent = str(server.requests[0].body["messages"])
        assert server.requests[0].body["model"] == "other"
    assert (tree(work), "The second task." in sent, "From here on the workspace is" in sent) == (before, True, True)
    copy = tmp_path / "work-replay-1"
    assert tree(copy) == {"a.txt": "other\n", "own.txt": "mine\n", "c.txt": "c\n"}
    (copied, *_) = [json.loads(line) for line in (await program.run("sessions", "--json", cwd=copy)).out.splitlines()]
    assert (await program.run("replay", copied["id"], cwd=copy)).code == Exit.DONE
    assert (await program.run("audit", "verify", cwd=work)).code == 0
    early = tmp_path / "early"
    async with ScriptedServer(script(())) as server:
        flags = ("--model", "anthropic-compatible/other", "--base-url", server.base_url, "--into", str(early))
        await program.run("replay", row["id"], "--from", "1", *flags, cwd=work)
        assert "The second task." not in str(server.requests[0].body["messages"])
    assert tree(early) == {"a.txt": "one\n", "own.txt": "mine\n"}
    (tmp_path / "link").symlink_to(tmp_path)
    for into, place in (("../around", tmp_path / "around"), ("../link/linked", tmp_path / "linked")):
        async with ScriptedServer(script(())) as server:
            flags = ("--model", "anthropic-compatible/other", "--base-url", server.base_url, "--into", into)
            await program.run("replay", row["id"], "--from", "1", *flags, cwd=work)
        (found,) = (await program.run("sessions", "--json", cwd=place)).out.splitlines()
        assert json.loads(found)["workspace"] == str(place)
    for words, code in (
        (("--from", "99"), "step-unknown"),
        (("--from", "1", "--into", str(work)), "checkpoints-folder-used"),
        (("--from", "1", "--into", "a.txt"), "checkpoints-folder-used"),
        (("--tools", "live", "--into", "a.txt/below"), "checkpoints-folder-used"),
    ):
        wrong = await program.run("replay", row["id"], *words, cwd=work)
        assert (wrong.code != 0, f"[{code}]" in wrong.err) == (True, True), wrong.err


async def test_the_files_of_a_step_without_changes_are_not_those_that_the_user_changed_later(tmp_path: Path) -> None:
    program, work = lay_out(tmp_path)
    turns = script(
        over("a.txt", "two\n"),
        (call("read_file", path="a.txt"),),
        (write("b.txt", "b\n"),),
        (write("c.txt", "c\n"),),
    )
    async with ScriptedServer(turns) as server:
        await headless(program, work, server, "Edit.")
        await headless(program, work, server, "Look.", "--continue")
        then = tree(work)
        await headless(program, work, server, "Write.", "--continue")
        (work / "own.txt").write_text("changed much later\n")
        await headless(program, work, server, "Write more.", "--continue")
    (row,) = [json.loads(line) for line in (await program.run("sessions", "--json", cwd=work)).out.splitlines()]
    async with ScriptedServer(script(())) as server:
        flags = ("--model", "anthropic-compatible/other", "--base-url", server.base_url)
        await program.run("replay", row["id"], "--from", "3", "--into", str(tmp_path / "copy"), *flags, cwd=work)
    assert tree(tmp_path / "copy") == then


async def test_what_the_user_wrote_after_a_kill_right_before_a_change_is_not_the_sessions(tmp_path: Path) -> None:
    program, work = lay_out(tmp_path)
    async with ScriptedServer(script(over("a.txt", "two\n"))) as server:
        assert (await headless(program, work, server, "Edit.")).code == Exit.DONE
    log = Store(program.home / "sessions.db")
    (row,) = log.sessions()
    started = next(event.seq for event in log.read(row.id) if isinstance(event.data, CallStarted))
    await log.set_aside(row.id, started - 1)  # as it is after a kill at this point
    await log.release(row.id)
    log.close()
    (work / "a.txt").write_text("one\n")
    (work / "own.txt").write_text("the user's own\n")
    (work / "new.txt").write_text("new\n")
    kept = tree(work)
    done = await program.run("checkpoint", "restore", "1", "--yes", cwd=work)
    assert (done.code, tree(work)) == (Exit.FAILED, kept), done.out + done.err  # they are conflicts
    assert (await program.run("audit", "verify", cwd=work)).code == 0


async def test_the_tools_of_a_session_run_again_in_a_copy_and_what_differs_is_named(tmp_path: Path) -> None:
    program, work = lay_out(tmp_path)
    steps = (
        (call("read_file", path="own.txt", other_paths=["a.txt"]), write("a.txt", "two\n")),
        (call("execute_command", command="cat a.txt own.txt; date +%N"), call("read_file", path=str(work / "a.txt"))),
    )
    async with ScriptedServer(script(*steps)) as server:
        await headless(program, work, server, "The first task, see @own.txt.")
        await headless(program, work, server, "The second task.", "--continue")
    (row,) = [json.loads(line) for line in (await program.run("sessions", "--json", cwd=work)).out.splitlines()]
    before, used = tree(work), json.loads((await program.run("usage", "--json")).out)["total"]
    again = await program.run("replay", row["id"], "--tools", "live", "--json", "--mode", "full", "--trust", cwd=work)
    drifts = [json.loads(line) for line in again.out.splitlines()]
    assert [(one["step"], one["tool"], one["outcome"]) for one in drifts] == [
        (1, "read_file", "same"),
        (1, "write_to_file", "same"),
        (3, "execute_command", "differs"),
        (3, "read_file", "same"),
    ], again.err
    assert (again.code, tree(work)) == (Exit.FAILED, before)
    assert tree(tmp_path / "work-replay-1") == before
    log = Store(program.home / "sessions.db")
    (copied,) = log.sessions(str(tmp_path / "work-replay-1"))
    prompts = [event.data for event in log.read(copied.id) if isinstance(event.data, Prompt)]
    log.close()
    # What was asked then would enclose a file again.
    assert [(one.content, one.enclosed) for one in prompts] == [((Text(text="Run the recorded calls again."),), ())] * 2
    careful = await program.run("replay", row["id"], "--tools", "live", "--mode", "plan", cwd=work)
    assert (careful.code, "1 the same, 2 different, 1 not run" in careful.out) == (Exit.FAILED, True), careful.out
    assert "write_to_file: not run: Denied: plan mode changes nothing" in careful.out
    models = ("cost", "unpriced", "estimated", "requests", "uncounted", "input_tokens", "output_tokens")
    total = json.loads((await program.run("usage", "--json")).out)["total"]
    assert {one: total[one] for one in models} == {one: used[one] for one in models}, "no model was called"
    (said,) = map(
        json.loads, (await program.run("sessions", "--json", cwd=tmp_path / "work-replay-1")).out.splitlines()
    )
    assert (said["cost"], said["estimated"]) == (0.0, False)


async def test_what_no_checkpoint_holds_is_not_said_to_be_unchanged(tmp_path: Path) -> None:
    program, work = lay_out(tmp_path)
    for name in ("data.bin", "db.bin", "still.bin"):
        with (work / name).open("wb") as file:
            file.truncate(60_000_000)
    turns = script(
        (call("execute_command", command="rm data.bin; echo tiny >> db.bin"),),
        (call("execute_command", command="echo c > c.txt"),),
    )
    words = "no checkpoint holds data.bin, db.bin, which changed"
    async with ScriptedServer(turns) as server:
        first = await headless(program, work, server, "Run.")
        assert f"# {words}" in first.err
        assert "no file was changed" not in first.err
        undone = await headless(program, work, server, "/undo", "--continue")
        assert (undone.code, f"There is nothing that can be undone: {words}." in undone.err) == (Exit.USAGE, True)
        second = await headless(program, work, server, "Go on.", "--continue", "--output-format", "json")
    result = json.loads(second.out)
    assert ([Path(one["path"]).name for one in result["changes"]], result["exact"], result["unseen"]) == (
        ["c.txt"],
        True,
        [],
    ), "that turn changed nothing of them"


async def test_an_undo_says_what_it_cannot_bring_back_and_a_kill_hides_nothing(tmp_path: Path) -> None:
    program, work = lay_out(tmp_path)
    for name in ("data.bin", "db.bin", "still.bin"):
        with (work / name).open("wb") as file:
            file.truncate(60_000_000)
    line = "rm data.bin; echo tiny >> db.bin; touch started; sleep 60"
    killed = Turn(items=(call("execute_command", command=line, timeout=90),))
    done = Turn(items=(call("attempt_completion", result="Done."),))
    third = Turn(items=(call("execute_command", command="rm still.bin a.txt"),))
    arguments = ("--model", MODEL, "--mode", "full", "--trust")
    async with ScriptedServer(Script(turns=(killed, done, third, done))) as server:
        process = await program.start("-p", "Run.", *arguments, "--base-url", server.base_url, cwd=work)
        while not (work / "started").exists():
            await asyncio.sleep(0.02)
        os.kill(process.pid, signal.SIGKILL)
        await process.communicate()
        ended = await program.run("-p", "", "--continue", *arguments, "--base-url", server.base_url, cwd=work)
        assert "# no checkpoint holds data.bin, db.bin, which changed" in ended.err
        assert "no file was changed" not in ended.err
        await headless(program, work, server, "And that.", "--continue")
        undone = await headless(program, work, server, "/undo", "--continue")
    assert "Not undone: no checkpoint holds still.bin, which changed." in undone.err
    assert (undone.code, (work / "a.txt").read_text()) == (Exit.FAILED, "one\n"), undone.err


async def test_without_checkpoints_nothing_says_that_no_file_was_changed(tmp_path: Path) -> None:
    program, work = lay_out(tmp_path)
    (program.home / "config.toml").write_text("[checkpoints]\nenabled = false\n")
    async with ScriptedServer(script((write("b.txt", "b\n"),))) as server:
        await headless(program, work, server, "Write.")
        undone = await headless(program, work, server, "/undo", "--continue")
    for ended in (undone, await program.run("checkpoint", "list", cwd=work)):
        said = " ".join((ended.out + ended.err).split())
        assert ("Checkpoints are off: checkpoints.enabled is false" in said, "has not changed" in said) == (True, False)

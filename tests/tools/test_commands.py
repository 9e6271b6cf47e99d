"""execute_command, and the command of attempt_completion."""

import asyncio
import os
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.tools.calls import call, prepare, run, text
from tests.workspace.processes import lasting, living, until
from tests.workspace.sandbox.running import bubblewrap
from tests.workspace.sandbox.vanishing import vanishing

from treadle.protocol.errors import ToolError
from treadle.protocol.messages import Text, text_of
from treadle.protocol.tools import (
    CallResult,
    CopyChanges,
    Origin,
    Outcome,
    Preview,
    Right,
    Rights,
    RunCommand,
    SandboxDenial,
    result_text,
)
from treadle.tools.quoted_words import result_of
from treadle.tools.running import Patience, run_line
from treadle.workspace.commands.confinement import OPEN, Remark, Setup
from treadle.workspace.commands.meter import is_ending
from treadle.workspace.commands.process import CommandProcess
from treadle.workspace.commands.wrapping import TIMES_AGAIN, Watch, Wrapping
from treadle.workspace.sandbox import Profile
from treadle.workspace.workspace import Conversation, Workspace, open_workspace


async def test_a_command_is_shown_exactly_and_runs_in_the_root(workspace: Workspace) -> None:
    prepared = await prepare(workspace, "execute_command", command="echo  hi; pwd")
    assert prepared.accesses == (RunCommand(command="echo  hi; pwd", cwd=workspace.root),)
    assert prepared.preview == Preview(title="Run", text="echo  hi; pwd")
    live: list[str] = []
    said = f"Exit status 0.\nhi\n{workspace.root}"
    assert await run(prepared, live.append) == result_of(Origin.COMMAND, Outcome.OK, said)
    assert "".join(live) == f"hi\n{workspace.root}\n"
    assert workspace.commands.all() == ()


@pytest.mark.parametrize(
    "printed",
    ["42", "abc def ghi", '{"a": 1, "b": 2}', "one\ntwo three four", "a: b\n\nlast = three four", "x" * 900 + " y z"],
)
async def test_output_without_an_end_of_line_is_what_was_printed(workspace: Workspace, printed: str) -> None:
    (Path(workspace.root) / "printed").write_text(printed)
    live: list[str] = []
    prepared = await prepare(workspace, "execute_command", command="cat printed")
    assert await run(prepared, live.append) == result_of(Origin.COMMAND, Outcome.OK, f"Exit status 0.\n{printed}")
    assert "".join(live) == printed


async def test_long_output_without_an_end_of_line_is_whole_in_its_file(workspace: Workspace) -> None:
    line = "for n in $(seq 30000); do echo line $n of it; done; printf 'last line of it'"
    result = await call(workspace, "execute_command", command=line)
    assert text_of(result.content).endswith("\nline 30000 of it\nlast line of it")
    assert Path(result.full_output).read_text().endswith("\nline 30000 of it\nlast line of it")


async def test_the_last_state_of_a_line_that_is_written_over_is_shown(workspace: Workspace) -> None:
    said = await text(workspace, "execute_command", command=r"printf 'progress 1\rprogress 2\rprogress 3'")
    assert said == "Exit status 0.\nprogress 3"


@pytest.mark.parametrize("ends_in", ["listening", "settling"])
async def test_what_a_command_prints_while_it_is_told_of_is_told_with_it_or_the_next_time(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, ends_in: str
) -> None:
    """It may end at any moment of the report."""
    listens = Workspace.listens

    async def end(command: CommandProcess) -> None:
        (Path(workspace.root) / "go").touch()
        await command.ended(60)

    async def looked(workspace: Workspace, command: CommandProcess) -> str:
        if ends_in == "listening":
            await end(command)
        return await listens(workspace, command)

    class Ends(CommandProcess):
        async def settle(self, output: str) -> tuple[Remark, ...]:
            if ends_in == "settling":
                await end(self)
            return await super().settle(output)

    monkeypatch.setattr(Workspace, "listens", looked)
    monkeypatch.setattr("treadle.workspace.commands.process.CommandProcess", Ends)
    line = "until test -e go; do sleep 0.05; done; echo told at the end; exit 3"
    background = Patience(0.1, keep=True, background=True)
    said = await run_line(workspace, line, background, lambda _: None, rights=OPEN)
    both = text_of(said.content)
    if ends_in == "settling":
        assert (said.outcome, both.startswith("Command 1 continues"), both[-11:]) == (Outcome.OK, True, "(no output)")
        both = await text(workspace, "read_command_output", command_number=1, wait=0)
    assert both == "Exit status 3.\ntold at the end"
    assert workspace.commands.all() == ()


async def test_a_failing_command_is_a_failure_with_its_output(workspace: Workspace) -> None:
    assert await call(workspace, "execute_command", command="echo no >&2; exit 3") == result_of(
        Origin.COMMAND, Outcome.FAILED, "Exit status 3.\nno"
    )
    assert await text(workspace, "execute_command", command="true") == "Exit status 0.\n(no output)"


@pytest.mark.parametrize("line", ["echo one", "seq 20; sleep 100 & exit 1", "true", "exit 3"])
async def test_a_question_about_a_copy_shows_what_the_command_printed_and_nothing_else(
    line: str, tmp_path: Path
) -> None:
    def confine(line: str, rights: Rights, *, background: bool = False, **_: object) -> Setup:
        return Setup(
            settle=lambda output, *, ended: (Remark("Treadle says so."),),
            find_denial=lambda output: SandboxDenial(right=Right.NETWORK),
            changes=lambda output, *, failed: CopyChanges(trouble="The copy is full."),
        )

    workspace = open_workspace(tmp_path, confine=confine)
    result = await run_line(workspace, line, Patience(5), lambda _: None, rights=OPEN)
    printed = {"echo one": "one", "true": "", "exit 3": ""}.get(line, "\n".join(map(str, range(11, 21))))
    assert result.copy is not None
    assert (result.copy.output, result.copy.ended) == (printed, text_of(result.content).split("\n")[0])
    assert "[Treadle says so.]" in text_of(result.content)
    assert text_of(result.content).endswith("\n[The copy is full.]")
    await workspace.close()


@pytest.mark.parametrize(
    ("vanish", "outcome"), [(0, Outcome.OK), (1, Outcome.OK), (TIMES_AGAIN, Outcome.OK), (3, Outcome.FAILED)]
)
async def test_a_folder_of_sockets_that_goes_away_while_a_sandbox_starts_is_looked_for_again(
    tmp_path: Path, vanish: int, outcome: Outcome
) -> None:
    state = bubblewrap()
    (root := tmp_path / "root").mkdir()
    profile = Profile(root=str(root), tmp=str(tmp_path / "tmp"), private=str(tmp_path / "private"))
    with vanishing(vanish) as prepared:
        workspace = open_workspace(root, confine=lambda *_, **__: Setup(prepared(profile, state)))
        result = await run_line(workspace, "echo ran >> log; echo ran", Patience(60), lambda _: None, rights=OPEN)
        await workspace.close()
    assert (result.outcome, len(prepared.folders)) == (outcome, min(vanish, TIMES_AGAIN) + 1)
    said = (
        "Exit status 0.\nran"
        if outcome is Outcome.OK
        else f"Exit status 1.\nbwrap: Can't mkdir {prepared.folders[-1]}: "
    )
    assert text_of(result.content).startswith(said)
    assert (root / "log").exists() == (outcome is Outcome.OK)


@pytest.mark.parametrize(
    ("said", "lacks"),
    [
        ("bwrap: Can't mkdir {gone}: Read-only file system\n", True),
        ("bwrap: Can't mkdir parents for {gone}/s: Read-only file system\n", True),
        ("bwrap: Can't find source path {gone}/s: No such file or directory\n", True),
        ("bwrap: Can't mkdir {there}: Read-only file system\n", False),
        ("bwrap: Can't mkdir /no/part: Read-only file system\n", False),
        ("ran\nbwrap: Can't mkdir {gone}: Read-only file system\n", False),
        ("bwrap: execvp {gone}: No such file or directory\n", False),
    ],
)
def test_only_a_sandbox_that_names_a_place_that_has_gone_was_not_set_up(tmp_path: Path, said: str, lacks: bool) -> None:
    places = {"there": tmp_path, "gone": tmp_path / "gone"}
    named = (places["there"], places["gone"], places["gone"] / "s")
    wrapping = Wrapping(inner=("bwrap", *(word for place in named for word in ("--tmpfs", str(place)))))
    assert wrapping.lacks_place(said.format_map(places)) == lacks


async def test_a_command_over_its_time_says_so(workspace: Workspace) -> None:
    result = await call(workspace, "execute_command", command="echo begun; sleep 100", timeout=1)
    assert result == result_of(
        Origin.COMMAND,
        Outcome.FAILED,
        "Stopped: it ran longer than 1 s. "
        "Give it more time, run it in the background, or have it do and print less.\nbegun",
    )


EATS = "python3 -c 'x = [bytearray(range(250)) * 240000 for _ in range(20)]'"
FORKS = "for i in 1 2 3 4 5 6 7 8 9 10; do sleep 60 & done; wait"


@pytest.mark.parametrize(
    ("line", "watch", "said"),
    [
        (f"{EATS} & {EATS}; {EATS}; echo after", Watch(memory=2**28), "Have it take less memory, such as by"),
        (FORKS, Watch(processes=6), "Have it start fewer processes at a time."),
        ("sleep 60 & sleep 60", Watch(seconds=1), "Split it into parts that take less time each."),
    ],
)
async def test_a_command_over_a_bound_is_told_what_helps_against_it_and_nothing_of_it_as_running(
    workspace: Workspace, line: str, watch: Watch, said: str
) -> None:
    bounded = replace(workspace, confine=lambda *_, **__: Setup(wrapping=Wrapping(watch=watch)))
    report = await text(bounded, "execute_command", command=line)
    assert report.startswith("Stopped: it ")
    assert said in report
    assert "Still running" not in report
    assert bounded.commands.all() == ()
    await bounded.close()


async def test_an_empty_command_is_the_models_mistake(workspace: Workspace) -> None:
    with pytest.raises(ToolError) as caught:
        await prepare(workspace, "execute_command", command="  ")
    assert caught.value.invalid


async def test_what_a_command_leaves_running_is_named_and_ends_with_the_session(workspace: Workspace) -> None:
    sleep = lasting()
    said = await text(workspace, "execute_command", command=f"{sleep} & echo on")
    assert said.startswith("Exit status 0.\nStill running after it: sleep (")
    assert said.endswith("). They end with the session, or when you stop command 1.\non")
    assert living(sleep) == 1
    await workspace.close()
    assert living(sleep) == 0


async def test_many_processes_of_one_program_that_run_on_are_one_entry_with_their_number(workspace: Workspace) -> None:
    sleep = lasting()
    runs = f"while [ $(pgrep -fc '^{sleep}$') -lt 40 ]; do :; done"
    line = f"for i in $(seq 40); do {sleep} & done; tail -f /dev/null & {runs}"
    said = await text(workspace, "execute_command", command=line)
    named = said.splitlines()[1].removeprefix("Still running after it: ").partition(". They end")[0].split(", ")
    assert [one.partition(" (")[0] for one in sorted(named)] == ["40 × sleep", "tail"]


def test_a_process_that_is_on_its_way_out_is_not_named() -> None:
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    assert (is_ending(child), is_ending(os.getpid())) == (True, False)
    os.waitpid(child, 0)
    assert is_ending(child)


async def test_a_cancelled_command_leaves_nothing_running(workspace: Workspace) -> None:
    sleep = lasting()
    prepared = await prepare(workspace, "execute_command", command=f"yes | (trap '' TERM; {sleep} & cat)")
    task = asyncio.ensure_future(run(prepared))
    await until(sleep, 1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (living(sleep), workspace.commands.all()) == (0, ())


async def test_completion_hands_on_its_result(workspace: Workspace) -> None:
    prepared = await prepare(workspace, "attempt_completion", result="Done.")
    assert (prepared.accesses, prepared.preview) == ((), Preview(title="Result", text="Done."))
    assert await run(prepared) == result_text(Outcome.OK, "Done.")


async def test_completion_runs_its_command_as_a_judged_access(workspace: Workspace) -> None:
    prepared = await prepare(workspace, "attempt_completion", result="Done.", command="echo shown")
    assert prepared.accesses == (RunCommand(command="echo shown", cwd=workspace.root),)
    assert await run(prepared) == CallResult(
        outcome=Outcome.OK,
        origin=Origin.COMMAND,
        content=(Text(text="Done.\n\n$ echo shown\n"), Text(text="Exit status 0.\nshown")),
    )


async def test_a_plan_is_handed_on_and_a_question_cannot_be_run(workspace: Workspace) -> None:
    assert await call(workspace, "plan_mode_respond", response="First.") == result_text(Outcome.OK, "First.")
    prepared = await prepare(workspace, "ask_followup_question", question="Which?", options=["a", "b"])
    assert (prepared.accesses, prepared.preview) == ((), Preview(title="Question", text="Which?"))
    with pytest.raises(ToolError, match="could not be asked"):
        await run(prepared)


async def test_a_command_in_the_background_is_read_waited_for_and_forgotten(workspace: Workspace) -> None:
    line = "echo up; while ! test -e go; do sleep 0.02; done; echo down; exit 2"
    begun = await call(workspace, "execute_command", command=line, background=True)
    assert begun == result_of(
        Origin.COMMAND,
        Outcome.OK,
        "Command 1 continues in the background. Use read_command_output to see more of it or to stop it.\nup",
    )
    look = await call(workspace, "read_command_output", command_number=1)
    assert look.running
    assert (
        look.content
        == result_of(
            Origin.COMMAND,
            Outcome.OK,
            "Command 1 continues in the background. Use read_command_output to see more of it or to stop it.\n(no "
            "output)",
        ).content
    )
    Path(workspace.root, "go").touch()
    assert await text(workspace, "read_command_output", command_number=1, wait=60) == "Exit status 2.\ndown"
    assert workspace.commands.all() == ()
    with pytest.raises(ToolError, match=r"Command 1 has ended, .*in the background: none\."):
        await call(workspace, "read_command_output", command_number=1)


async def test_a_command_in_the_background_can_be_stopped(workspace: Workspace) -> None:
    sleep = lasting()
    await call(workspace, "execute_command", command=f"{sleep} & {sleep}", background=True)
    assert await text(workspace, "read_command_output", command_number=1, stop=True) == (
        "Stopped: you asked for it.\n(no output)"
    )
    assert living(sleep) == 0


async def test_what_a_command_left_running_can_be_stopped_too(workspace: Workspace) -> None:
    sleep = lasting()
    await call(workspace, "execute_command", command=f"{sleep} &")
    assert (await text(workspace, "read_command_output", command_number=1, stop=True)).startswith("Stopped")
    assert living(sleep) == 0


async def test_a_cancelled_look_leaves_the_command_running(workspace: Workspace) -> None:
    sleep = lasting()
    await call(workspace, "execute_command", command=sleep, background=True)
    prepared = await prepare(workspace, "read_command_output", command_number=1, wait=600)
    task = asyncio.ensure_future(run(prepared))
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert living(sleep) == 1


async def test_a_long_command_goes_on_in_the_background(workspace: Workspace) -> None:
    sleep = lasting()
    result = await run_line(workspace, sleep, Patience(0.05, keep=True), lambda _: None, rights=OPEN)
    assert result.outcome is Outcome.OK
    assert await until(sleep, 1) == 1


async def test_only_so_many_commands_run_in_the_background(workspace: Workspace) -> None:
    for _ in range(16):
        await run_line(workspace, "sleep 1000", Patience(0, keep=True), lambda _: None, rights=OPEN)
    with pytest.raises(ToolError, match="Too many commands run in the background: 1, 2, "):
        await call(workspace, "execute_command", command="true")


async def test_long_output_is_bounded_for_the_model_and_its_file_is_named(tmp_path: Path) -> None:
    (root := tmp_path / "root").mkdir()
    workspace = open_workspace(root, spool=tmp_path / "spool", conversation=Conversation(room=lambda: 1_000))
    result = await call(workspace, "execute_command", command="seq 1000")
    (file,) = (tmp_path / "spool").iterdir()
    said = text_of(result.content)
    assert (len(said) < 1_300, result.full_output) == (True, str(file))
    assert f"the whole output is in {file}" in said
    assert said.startswith("Exit status 0.\n1\n2\n")
    assert said.endswith("\n999\n1000")
    assert file.read_text() == "".join(f"{n}\n" for n in range(1, 1001))
    assert (await call(workspace, "execute_command", command="seq 10")).full_output == ""
    await workspace.close()

"""Real commands: what they print, how they end, and that nothing outlives them."""

import asyncio
import os
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.workspace.processes import lasting, living, until

from treadle.protocol.errors import ToolError
from treadle.workspace.commands.confinement import Remark, Setup
from treadle.workspace.commands.meter import descendants, group_folders, remove_left_groups
from treadle.workspace.commands.process import Bounds, CommandProcess
from treadle.workspace.commands.wrapping import NO_TERMINAL
from treadle.workspace.workspace import Workspace

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes through /proc")


def _can_group() -> bool:
    """Whether a guard can make a control group here: tried by another process, which would stay in it."""
    program = "from treadle.workspace.commands.meter import Lid; lid = Lid(); print(lid.folder); lid.leave()"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return bool(ended.stdout.strip())


async def _run(workspace: Workspace, line: str, seconds: float = 60) -> tuple[str, str]:
    command = workspace.launcher.start(line)
    await command.finish(seconds)
    described = command.describe(), command.take_output()
    await command.close()
    return described


@pytest.mark.parametrize(
    ("starts", "children"),
    [
        ("", 0),
        ("start()", 1),
        ("one = threading.Thread(target=lambda: (start(), there.set(), signal.pause())); one.start(); there.wait()", 1),
    ],
)
def test_all_that_a_process_started_is_found_whichever_thread_began_it(starts: str, children: int) -> None:
    head = "import signal, subprocess, threading; there = threading.Event()"
    start = "def start(): return subprocess.Popen(('sleep', '600'))"
    program = f"{head}\n{start}\n{starts}\nprint('begun', flush=True)\nsignal.pause()"
    with subprocess.Popen((sys.executable, "-c", program), stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"begun\n"
        found = descendants(process.pid)
        for one in (*found, process.pid):
            os.kill(one, signal.SIGKILL)
    assert (len(found), descendants(process.pid)) == (children, [])


async def test_what_a_look_finds_that_is_under_way_at_the_end_is_said_with_the_result(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("treadle.workspace.commands.process._SETTLE_EVERY", 0.01)
    found, looking, go_on = ["earlier"], threading.Event(), threading.Event()

    def settle(output: str, *, ended: bool) -> tuple[Remark, ...]:
        taken, found[:] = list(found), []
        if not ended:
            looking.set()
            go_on.wait()
        return tuple(map(Remark, taken))

    command = workspace.launcher.start("true", setup=Setup(settle=settle))
    await asyncio.to_thread(looking.wait)
    await command.finish(60)
    settling = asyncio.create_task(command.settle(""))
    await asyncio.sleep(0)
    found.append("later")
    go_on.set()
    assert [one.text for one in await settling] == ["earlier", "later"]
    await command.close()


async def test_what_is_found_only_as_a_command_is_closed_is_not_lost(workspace: Workspace) -> None:
    found = ["earlier"]

    def settle(output: str, *, ended: bool) -> tuple[Remark, ...]:
        taken, found[:] = list(found), []
        return tuple(map(Remark, taken))

    late = list[Remark]()
    command = workspace.launcher.start(f"{lasting()} >/dev/null 2>&1 &", setup=Setup(settle=settle, unsaid=late.extend))
    await command.finish(60, keep=True)
    assert command.alive
    assert [one.text for one in await command.settle("")] == ["earlier"]
    found.append("later")
    await command.close()
    assert [one.text for one in late] == ["later"]


@pytest.mark.parametrize(
    ("line", "described"),
    [
        ("true", "Exit status 0."),
        ("exit 7", "Exit status 7."),
        ("exit 300", "Exit status 44."),
        ("kill -SEGV $$", "Killed by SIGSEGV."),
        ("no-such-program-here 2>/dev/null", "Exit status 127."),
    ],
)
async def test_the_end_of_a_command_is_described(workspace: Workspace, line: str, described: str) -> None:
    assert await _run(workspace, line) == (described, "")


@pytest.mark.parametrize(
    ("counts", "why"),
    [
        ((2, 2), "by a program: the kernel ended none for want of memory"),
        ((2, 3), "perhaps because memory ran out"),
        ((None,), "perhaps because memory ran out"),
    ],
)
@pytest.mark.parametrize(
    ("line", "described"),
    [("kill -9 $$", "Killed by SIGKILL, {}."), ("exit 137", "Exit status 137 (128 + SIGKILL, {}).")],
)
async def test_a_command_that_was_killed_ran_out_of_memory_only_where_something_did(
    workspace: Workspace,
    monkeypatch: pytest.MonkeyPatch,
    counts: tuple[int | None, ...],
    why: str,
    line: str,
    described: str,
) -> None:
    given = iter(counts)
    monkeypatch.setattr("treadle.workspace.commands.process._kills_for_memory", lambda: next(given))
    assert (await _run(workspace, line))[0] == described.format(why)


async def test_where_no_editor_can_be_opened_git_rebases_nothing_and_says_why(workspace: Workspace) -> None:
    made = "for one in 1 2 3; do git commit -q --allow-empty -m c$one; done"
    await _run(workspace, f"git init -q; git config user.email a@b; git config user.name a; {made}")
    described, output = await _run(workspace, "git rebase -i HEAD~2")
    assert (described, "No editor could be opened" in output) == ("Exit status 1.", True)
    steps = "GIT_EDITOR='sed -i 2d' git rebase -q -i HEAD~2 && git log --format=%s"
    assert (await _run(workspace, steps))[1].split()[-2:] == ["c2", "c1"]


async def test_output_and_errors_come_in_order_and_live(workspace: Workspace) -> None:
    command = workspace.launcher.start("echo one; echo two >&2; printf three")
    live: list[str] = []
    command.show(live.append)
    await command.finish(60)
    command.show(None)
    assert ("".join(live), command.take_output(), command.alive) == ("one\ntwo\nthree",) * 2 + (False,)


async def test_invalid_bytes_and_escape_codes_come_harmless(workspace: Workspace) -> None:
    output = (await _run(workspace, r"printf '\033[31mred\033[0m \377 \007 10%%\r20%%\n\xe2\x82'; printf '\xac'"))[1]
    assert output == "20%\n€"
    assert (await _run(workspace, r"printf '\033[31mred\033[0m \377 \007'"))[1] == "red \ufffd \\x07"


async def test_a_command_that_reads_or_asks_for_a_password_does_not_hang(workspace: Workspace) -> None:
    assert await _run(workspace, "cat; read -r word || echo nothing to read") == ("Exit status 0.", "nothing to read\n")
    assert (await _run(workspace, "(: </dev/tty) 2>/dev/null || echo no terminal"))[1] == "no terminal\n"
    assert (await _run(workspace, "tty"))[1] == "not a tty\n"


_KEYS = "import os, select\nos.read(0, 1) or os.dup2(2, 0)\nselect.select([0], [], [])\n"
"""How editors look for keys: they find the input empty, take the error output for it, and wait."""


@pytest.mark.parametrize("line", ["python3 keys.py", "python3 keys.py 2>&1 | cat", "(sh -c 'python3 keys.py; true')"])
async def test_a_program_that_waits_for_keys_is_ended_and_the_reason_said(workspace: Workspace, line: str) -> None:
    (Path(workspace.root) / "keys.py").write_text(_KEYS)
    described = (await _run(workspace, f"{line}; echo never"))[0]
    assert described == f"Stopped: {NO_TERMINAL}."


async def test_a_program_that_waits_without_a_terminal_is_left_alone(workspace: Workspace) -> None:
    (Path(workspace.root) / "file").touch()
    quiet = "import time\nfor _ in range(5): time.sleep(0.25)\n"
    (Path(workspace.root) / "quiet.py").write_text(quiet)
    line = "python3 quiet.py | python3 quiet.py & python3 quiet.py <&- & python3 quiet.py 0>file; wait; echo done"
    assert await _run(workspace, line) == ("Exit status 0.", "done\n")


async def test_provider_keys_do_not_reach_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret")
    from treadle.workspace.workspace import open_workspace

    workspace = open_workspace(tmp_path)
    assert (await _run(workspace, "env | grep -c secret"))[1] == "0\n"
    await workspace.close()


async def test_a_child_that_keeps_the_output_open_does_not_keep_the_result(workspace: Workspace) -> None:
    sleep = lasting()
    command = workspace.launcher.start(f"{sleep} & echo started")
    await command.finish(60)
    assert (command.status, command.take_output(), command.alive) == (0, "started\n", True)
    assert [name.split()[0] for name in command.left_behind] == ["sleep"]
    await command.close()
    assert living(sleep) == 0


async def test_what_daemonises_is_reported_and_ended_too(workspace: Workspace) -> None:
    sleep = lasting()
    command = workspace.launcher.start(f"(setsid {sleep} >/dev/null 2>&1 &) ; setsid -f {sleep} >/dev/null 2>&1")
    await command.finish(60)
    assert (command.status, len(command.left_behind)) == (0, 2)
    await command.close()
    assert living(sleep) == 0


async def test_output_of_late_writers_can_be_read_later(workspace: Workspace) -> None:
    command = workspace.launcher.start("(while ! test -e go; do sleep 0.05; done; echo late) & echo early")
    await command.finish(60)
    assert command.take_output() == "early\n"
    Path(workspace.root, "go").touch()
    while command.alive:
        await asyncio.sleep(0.02)
    assert command.take_output() == "late\n"
    await command.close()


async def test_a_command_over_its_time_is_ended_with_its_children(workspace: Workspace) -> None:
    sleep = lasting()
    described = await _run(workspace, f"echo begun; {sleep} & {sleep}", 0.3)
    assert described[0] == "Stopped: it ran longer than 0.3 s."
    assert described[1].startswith("begun\n")  # bash may have the time to say who was ended first
    assert living(sleep) == 0


async def test_a_cancelled_command_leaves_nothing_even_if_it_ignores_the_request_to_end(workspace: Workspace) -> None:
    sleep = lasting()
    line = f"trap '' TERM; setsid {sleep} & (trap '' TERM; {sleep}) & while :; do {sleep}; done"
    command = workspace.launcher.start(line)
    task = asyncio.ensure_future(command.finish(60))
    assert await until(sleep, 3) == 3
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (living(sleep), command.alive) == (0, False)
    await command.close()


async def test_a_cancel_during_the_grace_after_the_time_limit_shortens_it(workspace: Workspace) -> None:
    sleep = lasting()
    command = workspace.launcher.start(f"trap '' TERM; {sleep}; {sleep}; {sleep}")
    task = asyncio.ensure_future(command.finish(0.1))
    await until(sleep, 1)
    while not command.why_stopped:
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (living(sleep), command.alive) == (0, False)
    await command.close()


async def test_endless_output_stays_within_bounds(workspace: Workspace, tmp_path: Path) -> None:
    bounds = Bounds(kept=1000, live=5000, spooled=100_000, read=3_000_000)
    command = workspace.launcher.start("yes", bounds)
    live: list[str] = []
    command.show(live.append)
    await command.finish(60)
    output = command.take_output()
    await command.close()
    assert command.describe() == "Stopped: it printed more than 3,000,000 bytes."
    assert output.startswith("y\n" * 250)
    assert output.endswith("y\n" * 240)
    (spool,) = (tmp_path / "spool").iterdir()
    assert f"; the whole output (first 100,000 bytes) is in {spool} ...]" in output
    assert len(output) < 1200
    assert spool.stat().st_size == 100_000
    assert spool.stat().st_mode & 0o777 == 0o600
    assert "only the newest is shown" in "".join(live)
    assert len("".join(live)) < 5000 + 100 + 500 * 30


async def test_short_output_makes_no_file(workspace: Workspace, tmp_path: Path) -> None:
    await _run(workspace, "echo hi")
    assert not (tmp_path / "spool").exists()


async def test_long_output_is_all_in_the_file(workspace: Workspace, tmp_path: Path) -> None:
    output = (await _run(workspace, "seq 20000"))[1]
    (spooled,) = (tmp_path / "spool").iterdir()
    assert spooled.read_text() == "".join(f"{n}\n" for n in range(1, 20001))
    assert f"the whole output is in {spooled}" in output
    assert output.endswith("19999\n20000\n")


async def test_a_directory_that_is_gone_is_said_and_one_that_comes_back_is_used(workspace: Workspace) -> None:
    assert (await _run(workspace, "pwd"))[1] == f"{workspace.root}\n"
    Path(workspace.root).rmdir()
    with pytest.raises(ToolError, match="does not exist any more"):
        workspace.launcher.start("true")
    Path(workspace.root).mkdir()
    Path(workspace.root, "new").touch()
    assert (await _run(workspace, "ls"))[1] == "new\n"


async def test_a_line_with_a_nul_byte_or_too_long_is_refused(workspace: Workspace) -> None:
    with pytest.raises(ToolError, match="NUL byte"):
        workspace.launcher.start("echo a\0b")
    with pytest.raises(ToolError, match="an incomplete character"):
        workspace.launcher.start("echo \ud800")
    with pytest.raises(ToolError, match=r"longer than 131,071 bytes"):
        workspace.launcher.start("x" * 131_072)
    assert await _run(workspace, f": {'x' * 131_000}; echo long") == ("Exit status 0.", "long\n")


async def test_a_command_for_which_there_are_too_few_descriptors_is_refused(workspace: Workspace) -> None:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, limits[1]))
    try:
        with pytest.raises(ToolError, match="Too many open files"):
            workspace.launcher.start("true")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert (await _run(workspace, "true"))[0] == "Exit status 0."


async def test_a_guard_kept_ready_that_was_killed_is_replaced(workspace: Workspace) -> None:
    await _run(workspace, "true")
    while not descendants(os.getpid()):
        await asyncio.sleep(0.01)
    for pid in descendants(os.getpid()):
        os.kill(pid, signal.SIGKILL)
    while descendants(os.getpid()):
        await asyncio.sleep(0.01)
    assert await _run(workspace, "echo on") == ("Exit status 0.", "on\n")


async def test_closing_the_workspace_ends_every_command(workspace: Workspace) -> None:
    sleep = lasting()
    for _ in range(3):
        workspace.commands.add(workspace.launcher.start(sleep))
    assert await until(sleep, 3) == 3
    await workspace.close()
    assert (living(sleep), workspace.commands.all()) == (0, ())


async def test_nothing_outlives_treadle_when_it_is_killed(tmp_path: Path) -> None:
    sleep = lasting()
    program = (
        "import asyncio\n"
        "from treadle.workspace.workspace import open_workspace\n"
        "async def main():\n"
        f"    open_workspace({str(tmp_path)!r}).launcher.start('setsid {sleep} & {sleep} & trap \"\" TERM; {sleep}')\n"
        "    await asyncio.sleep(60)\n"
        "asyncio.run(main())\n"
    )
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", program)
    assert await until(sleep, 3) == 3
    process.send_signal(signal.SIGKILL)
    await process.wait()
    assert await until(sleep, 0) == 0


async def test_a_command_whose_guard_is_killed_ends_and_says_so(workspace: Workspace) -> None:
    sleep = lasting()
    command = workspace.launcher.start(f"exec {sleep}")
    await until(sleep, 1)
    os.kill(command.pid, signal.SIGKILL)
    await command.finish(60)
    assert command.describe() == "Ended, with an unknown exit status: its guard process was killed."
    assert await until(sleep, 0) == 0
    await command.close()


def _groups(pids: Sequence[int]) -> list[str]:
    """Give the control groups of guards that are there."""
    names = {f"treadle-{pid}" for pid in pids}  # others come and go meanwhile, which a walk does not mind
    return [folder for folder, _, _ in os.walk("/sys/fs/cgroup") if os.path.basename(folder) in names]  # noqa: PTH119


async def _ready_guard() -> int:
    """Wait for the guard that is kept ready, and until it waits for an order."""
    while not (found := [pid for pid in descendants(os.getpid()) if "treadle-" in _group_of(pid)]):
        await asyncio.sleep(0.01)
    return found[0]


def _group_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cgroup").read_text()
    except OSError:
        return ""


@pytest.mark.skipif(not _can_group(), reason="no control group can be made")
async def test_a_ready_guard_is_in_its_control_group_and_the_group_goes_with_it(workspace: Workspace) -> None:
    command = workspace.launcher.start("true")
    await command.finish(60)
    await command.close()
    ready = await _ready_guard()
    assert (_groups([command.pid]), len(_groups([ready]))) == ([], 1)
    used = workspace.launcher.start("cat /proc/self/cgroup")
    await used.finish(60)
    assert (used.pid, f"treadle-{ready}" in used.take_output()) == (ready, True)
    await used.close()
    unused = await _ready_guard()
    await workspace.close()
    assert _groups([ready, unused]) == []


FIRST, SECOND = "- cgroup cgroup rw,pids", "- cgroup2 cgroup2 rw"


@pytest.mark.parametrize(
    ("groups", "mounts", "folders"),
    [
        ("8:pids:/", f"34 31 0:33 / /sys/fs/cgroup/pids rw {FIRST}", ["/sys/fs/cgroup/pids"]),
        ("8:cpu,pids:/a/b", f"34 31 0:33 / /sys/fs/cgroup/pids rw {FIRST}", ["/sys/fs/cgroup/pids/a/b"]),
        ("8:pids:/box/7", f"34 31 0:33 /box/7 /sys/fs/cgroup/pids rw {FIRST}", ["/sys/fs/cgroup/pids"]),
        ("8:pids:/box/7/in", f"34 31 0:33 /box/7 /sys/fs/cgroup/pids rw {FIRST}", ["/sys/fs/cgroup/pids/in"]),
        ("8:pids:/box/71", f"34 31 0:33 /box/7 /sys/fs/cgroup/pids rw {FIRST}", []),
        ("0::/user/one", f"30 24 0:26 / /sys/fs/cgroup rw shared:4 {SECOND}", ["/sys/fs/cgroup/user"]),
        ("0::/", f"30 24 0:26 / /sys/fs/cgroup rw {SECOND}", ["/sys/fs/cgroup"]),
        ("0::/box/7", f"30 24 0:26 /box/7 /sys/fs/cgroup rw {SECOND}", ["/sys/fs/cgroup"]),
        ("8:cpu:/a", "34 31 0:33 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu", []),
        ("8:pids:/a", "", []),
    ],
)
def test_the_group_of_a_process_is_found_where_it_is_seen(groups: str, mounts: str, folders: list[str]) -> None:
    assert group_folders([groups], [mounts]) == folders


@pytest.mark.skipif(not _can_group(), reason="no control group can be made")
async def test_no_control_group_outlives_treadle_when_it_is_killed(tmp_path: Path) -> None:
    sleep = lasting()
    program = (
        "import asyncio\n"
        "from treadle.workspace.workspace import open_workspace\n"
        "async def main():\n"
        f"    command = open_workspace({str(tmp_path)!r}).launcher.start({sleep!r})\n"
        "    print(command.pid, flush=True)\n"
        "    await asyncio.sleep(60)\n"
        "asyncio.run(main())\n"
    )
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", program, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    guard = int(await process.stdout.readline())
    assert await until(sleep, 1) == 1
    assert len(_groups([guard])) == 1
    process.send_signal(signal.SIGKILL)
    await process.wait()
    while _groups([guard]):
        await asyncio.sleep(0.01)


@pytest.mark.skipif(not _can_group(), reason="no control group can be made")
async def test_a_control_group_that_a_killed_guard_left_is_removed_and_no_other(workspace: Workspace) -> None:
    gone = await asyncio.create_subprocess_exec("true")
    await gone.wait()
    workspace.commands.add(command := workspace.launcher.start(lasting()))
    while not (groups := _groups([command.pid])):
        await asyncio.sleep(0.01)
    left = Path(groups[0]).with_name(f"treadle-{gone.pid}")
    left.mkdir()
    remove_left_groups()
    assert (left.exists(), _groups([command.pid])) == (False, groups)
    await workspace.close()


def _numbers(commands: tuple[tuple[int, CommandProcess], ...]) -> list[int]:
    return [number for number, _ in commands]


async def test_commands_keep_their_numbers(workspace: Workspace) -> None:
    numbers = [workspace.commands.add(workspace.launcher.start("true")) for _ in range(3)]
    assert numbers == _numbers(workspace.commands.all()) == [1, 2, 3]
    command = workspace.commands.get(2)
    assert command is not None
    workspace.commands.remove(2)
    assert _numbers(workspace.commands.all()) == [1, 3]
    await command.close()


async def test_a_command_that_had_ended_is_not_called_stopped_for_what_it_left(workspace: Workspace) -> None:
    command = workspace.launcher.start("setsid sleep 30 >/dev/null 2>&1 & exit 3")
    assert await command.ended(10)
    await command.close()
    assert command.describe() == "Exit status 3."


async def test_no_guard_is_made_ready_after_the_workspace_is_closed(workspace: Workspace) -> None:
    for _ in range(2):
        await _run(workspace, "true")
    await workspace.close()
    before = descendants(os.getpid())
    await asyncio.sleep(0.6)
    assert set(descendants(os.getpid())) <= set(before)


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("line", "said", "output"),
    [
        ("false | cat", "Exit status 0 (but in the pipe `false` exited 1).", ""),
        ("yes | head -n 1", "Exit status 0.", "y\n"),
        ("set -o pipefail; sh -c 'exit 3' | cat", "Exit status 3 (but in the pipe `sh -c 'exit 3'` exited 3).", ""),
        ("true | false", "Exit status 1.", ""),
        ("false | true; exit 5", "Exit status 5 (but in the pipe `false` exited 1).", ""),
        ("trap 'echo mine' EXIT; false | true", "Exit status 0.", "mine\n"),
        ("kill -TERM $$ | cat", "Killed by SIGTERM.", ""),
        ("bash -c 'echo ${BASH_ENV-none}; trap -p EXIT' | cat", "Exit status 0.", "none\n"),
        ("exec 213>&-; false | true", "Exit status 0.", ""),
        ("echo '0 1 2' >&213; false | true", "Exit status 0.", ""),
    ],
)
async def test_how_the_parts_of_a_pipe_ended_is_said_and_changes_nothing(
    workspace: Workspace, line: str, said: str, output: str
) -> None:
    assert await _run(workspace, line) == (said, output)


async def test_a_long_line_is_cut_and_the_file_has_it_all(workspace: Workspace, tmp_path: Path) -> None:
    said = (await _run(workspace, "echo first; head -c 50000 /dev/zero | tr '\\0' x; echo; echo last"))[1]
    (spooled,) = (tmp_path / "spool").iterdir()
    assert said == (
        f"first\n{'x' * 2000} [... 48,000 more characters in this line]\nlast\n"
        f"[long lines are cut; the whole output is in {spooled}]"
    )
    assert spooled.read_text() == f"first\n{'x' * 50_000}\nlast\n"


async def test_output_without_a_line_end_is_given_as_far_as_it_is(workspace: Workspace) -> None:
    command = workspace.launcher.start("printf 'Password: '; while ! test -e go; do sleep 0.02; done; echo ok")
    while not (said := command.take_output()):
        await asyncio.sleep(0.01)
    assert (said, command.unread) == ("Password: ", False)
    Path(workspace.root, "go").touch()
    await command.finish(60)
    assert command.take_output() == "ok\n"
    await command.close()


async def test_output_is_bounded_in_bytes_for_a_small_window(workspace: Workspace, tmp_path: Path) -> None:
    command = workspace.launcher.start("yes äöü | head -n 1000")
    await command.finish(60)
    said = command.take_output(700)
    await command.close()
    (spooled,) = (tmp_path / "spool").iterdir()
    assert len(said.encode()) < 700 + 200
    assert said.startswith("äöü\n" * 40)
    assert said.endswith("äöü\n" * 40)
    assert f"the whole output is in {spooled}" in said


async def test_a_cancellation_that_comes_with_the_end_is_not_lost(workspace: Workspace) -> None:
    command = workspace.launcher.start("sleep 1000")
    waiting = asyncio.create_task(command.finish(60))
    await asyncio.sleep(0)

    def cancel() -> None:
        waiting.cancel()

    command.when_gone(cancel)
    os.kill(command.pid, signal.SIGKILL)
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await command.close()

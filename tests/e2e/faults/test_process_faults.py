"""What happens with commands that do not end, do not stop printing, multiply, or lose their parent."""

import os
import signal
from pathlib import Path

import pytest

from tests.e2e.faults.driving import make, run, script, work
from tests.e2e.process import Program
from tests.e2e.running import model, running
from tests.needed import needs
from tests.orphans import command_line
from treadle.app.errors.exits import Exit
from treadle.providers.scripted.scripted_server import ScriptedServer
from treadle.workspace.commands.meter import descendants
from treadle.workspace.commands.process import Bounds
from treadle.workspace.workspace import open_workspace

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes through /proc")

DAEMON = (
    "import os, sys, time\n"
    "if os.fork(): sys.exit()\n"
    "os.setsid()\n"
    "if os.fork(): sys.exit()\n"
    "for number in range(3): os.close(number)\n"
    "time.sleep(1000)\n"
)


END = "import os, sys\nos.kill(os.getpid(), int(sys.argv[1]))\n"


async def test_a_command_over_its_time_is_ended_with_its_group_and_what_it_printed_is_kept(tmp_path: Path) -> None:
    done = await work(tmp_path, run("echo begun; trap '' TERM; sleep 1000 & sleep 1000", timeout=1))
    told = "Stopped: it ran longer than 1 s. Give it more time, run it in the background, or have it do and print less."
    assert done.results == [f"{told}\nbegun"]


async def test_what_keeps_the_output_open_or_daemonises_does_not_keep_the_result_and_ends_with_the_session(
    tmp_path: Path,
) -> None:
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws" / "daemon.py").write_text(DAEMON)
    line = (
        "sleep 1000 & setsid sleep 1000 & python3 daemon.py; while ! pgrep -f daemon.py >/dev/null; do :; done; echo on"
    )
    done = await work(tmp_path, run(line))
    (result,) = done.results
    assert result.startswith("Exit status 0.\nStill running after it: ")
    assert [result.count(name) for name in ("sleep (", "python3 (")] == [2, 1]
    assert result.endswith("\non")


async def test_a_command_that_asks_for_a_password_fails_at_once(tmp_path: Path) -> None:
    line = (
        "cat; read -r word || echo nothing to read; (read -r word </dev/tty) 2>/dev/null || echo no terminal; "
        "python3 -c 'import getpass; getpass.getpass()' 2>&1 | tail -n 1"
    )
    done = await work(tmp_path, run(line))
    (result,) = done.results
    assert result.splitlines() == [
        "Exit status 0 (but in the pipe part 1 exited 1).",
        "nothing to read",
        "no terminal",
        "EOFError",
    ]


async def test_an_endless_flood_is_ended_at_the_hard_limit(tmp_path: Path) -> None:
    workspace = open_workspace(tmp_path, spool=tmp_path / "spool")
    command = workspace.launcher.start("yes", Bounds(read=100_000_000))
    await command.finish(60)
    assert command.describe() == "Stopped: it printed more than 100,000,000 bytes."
    assert len(command.take_output()) < 33 * 1024
    await command.close()
    await workspace.close()


@pytest.mark.skipif(os.getuid() != 0, reason="needs another user to bound")
@needs("setpriv")
async def test_a_fork_bomb_stops_at_the_bound_and_is_ended(tmp_path: Path) -> None:
    bomb = "ulimit -u 60; for i in $(seq 300); do sleep 1000 & done; wait"
    workspace = open_workspace(tmp_path, spool=tmp_path / "spool")
    command = workspace.launcher.start(f"setpriv --reuid=61234 --clear-groups bash -c '{bomb}'")
    await command.finish(1)
    assert "Resource temporarily unavailable" in command.take_output()
    assert (command.describe(), command.alive) == ("Stopped: it ran longer than 1 s.", False)
    await command.close()
    await workspace.close()


async def test_memory_that_runs_out_costs_the_command_and_not_the_program(tmp_path: Path) -> None:
    eats = "(ulimit -v 500000; python3 -c 'b = bytearray(10**9)') 2>&1 | tail -n 1"
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws" / "end.py").write_text(END)
    done = await work(tmp_path, (run(eats), run("cat /proc/self/oom_score_adj"), run("python3 end.py 9")))
    assert done.results == [
        "Exit status 0 (but in the pipe part 1 exited 1).\nMemoryError",
        "Exit status 0.\n500",
        "Killed by SIGKILL, by a program: the kernel ended none for want of memory.\n(no output)",
    ]


async def test_a_killed_program_takes_all_its_commands_along(tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws" / "daemon.py").write_text(DAEMON)
    line = "trap '' TERM; python3 daemon.py; setsid sleep 1000 & while :; do echo on; sleep 0.1; done"
    steps = (run("sleep 1000", background=True), run(line))
    async with ScriptedServer(script(*steps)) as server:
        flags = (*model(server), "--mode", "full", "-C", str(tmp_path / "ws"))
        async with running(Program(tmp_path / "home"), "-p", "Work.", *flags) as session:
            await session.until("call_output")
            below = {pid: command_line(pid) for pid in descendants(session.process.pid)}
            session.send(signal.SIGKILL)
            await session.end()
    assert sum("sleep 1000" in line for line in below.values()) >= 2
    # That they end is what the check after each test waits for.


async def test_death_by_a_signal_is_told_from_a_status(tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws" / "end.py").write_text(END)
    done = await work(tmp_path, (run("python3 end.py 11"), run("exit 139"), run("exit 3")))
    assert [result.partition("\n")[0] for result in done.results] == [
        "Killed by SIGSEGV.",
        "Exit status 139 (128 + SIGSEGV).",
        "Exit status 3.",
    ]


async def test_a_folder_that_a_command_removed_below_itself_is_left_for_the_root(tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    done = await work(tmp_path, (run('mkdir sub && cd sub && rmdir "$PWD" && pwd -P'), run("pwd")))
    assert done.results[1] == f"Exit status 0.\n{tmp_path}/ws"
    assert done.ended.code == Exit.DONE


async def test_the_keys_of_the_program_are_not_in_the_environment_of_a_command(tmp_path: Path) -> None:
    keys = {"ANTHROPIC_API_KEY": "sk-ant-0123456789012345678901234567", "MY_PASSWORD": "not-for-children"}
    await work(tmp_path, run("env > seen.txt"), make("read_file", path="x"), extra=keys)
    seen = (tmp_path / "ws" / "seen.txt").read_text()
    assert "PATH=" in seen
    assert [text for text in ("API_KEY", "PASSWORD", "sk-ant", "not-for-children") if text in seen] == []


async def test_a_command_gets_the_variables_that_the_user_passes_on(tmp_path: Path) -> None:
    settings = tmp_path / "home" / "config.toml"
    settings.parent.mkdir()
    settings.write_text('pass_variables = ["MY_TOOL"]\n')
    await work(tmp_path, run("env > seen.txt"), extra={"MY_TOOL": "here", "MY_OTHER": "there"})
    seen = (tmp_path / "ws" / "seen.txt").read_text().splitlines()
    assert ("MY_TOOL=here" in seen, "MY_OTHER=there" in seen) == (True, False)

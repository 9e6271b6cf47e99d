"""Real commands under Landlock, and the trees that are granted."""

import os
import socket
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.workspace.sandbox.running import Box, landlock

from treadle.protocol.tools import Right
from treadle.workspace.sandbox.backend import Backend
from treadle.workspace.sandbox.denial import find_denial
from treadle.workspace.sandbox.landlock import without
from treadle.workspace.sandbox.profile import is_within

NAMES = st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=3).map(lambda parts: "/" + "/".join(parts))
TREE = sorted(
    {f"/{'/'.join(parts)}" for a in "abc" for b in "abc" for c in "abc" for parts in ([a], [a, b], [a, b, c])}
)


def children(folder: str) -> list[str]:
    return [path for path in TREE if path.rpartition("/")[0] == folder.rstrip("/")]


@pytest.fixture
def box(tmp_path: Path) -> Box:
    (tmp_path / "work" / "sub").mkdir(parents=True)
    (tmp_path / "work" / ".git").mkdir()
    (tmp_path / "work" / ".env").write_text("SECRET=1")
    return Box(tmp_path, landlock())


@settings(max_examples=200)
@given(st.lists(NAMES, max_size=4))
def test_everything_but_the_forbidden_is_granted(forbidden: list[str]) -> None:
    granted = list(without("/", forbidden, children))
    for path in (each for each in TREE if not children(each)):
        allowed = any(is_within(path, tree) for tree in granted)
        assert allowed is not any(is_within(path, each) for each in forbidden)


async def test_a_workspace_without_protected_paths_is_free(box: Box) -> None:
    assert await box.run("echo x > new && mkdir d && mv new d/ && rm -r d && pwd") == (0, f"{box.root}\n")


async def test_how_the_parts_of_a_pipe_ended_is_known_in_the_sandbox(box: Box) -> None:
    command = box.start("false | cat", box.profile())
    await command.finish(60)
    assert (command.describe(), command.take_output()) == ("Exit status 0 (but in the pipe `false` exited 1).", "")
    await command.close()


async def test_protected_paths_stay_as_they_are_and_nothing_new_comes_beside_them(box: Box) -> None:
    profile = box.profile(".git")
    for line in ("touch .git/hooks", "mv .git g", "echo x > .mcp.json", "mv sub other", "echo x > sub/n; mv sub/n ."):
        assert (await box.run(line, profile))[0] == 1, line
    assert await box.run("echo x > sub/new", profile) == (0, "")


async def test_nothing_outside_can_be_changed_and_masked_files_cannot_be_read(box: Box) -> None:
    for line in (f"echo x > {box.folder}/file", "echo x > /etc/treadle-test", "cat .env", "ln .env sub/e && cat sub/e"):
        status, output = await box.run(line, box.profile(masked=(".env",)))
        assert (status, "SECRET" in output) == (1, False)
    assert (await box.run("echo x > new", replace(box.profile(), change_root=False)))[0] == 1


_GET_FLAGS = "0x80086601"
METADATA = {
    "mode": "os.chmod('.env', 0o4777)",
    "mode of a link": "os.chmod('.env', 0o777, dir_fd=None, follow_symlinks=True)",
    "mode of what is open": "os.fchmod(os.open('.env', os.O_RDONLY), 0o777)",
    "owner": "os.chown('.env', 12, 12)",
    "owner of a link": "os.lchown('.env', 12, 12)",
    "times": "os.utime('.env', (1, 1))",
    "attribute": "os.setxattr('.env', 'user.a', b'1')",
    "no attribute": "os.removexattr('.env', 'user.a')",
    "flags": "import fcntl; fcntl.ioctl(os.open('.env', os.O_RDONLY), 0x40086602, bytes(8))",
    "project": "import fcntl; fcntl.ioctl(os.open('.env', os.O_RDONLY), 0x401C5820, bytes(28))",
    "attributes by a newer call": "import ctypes; libc = ctypes.CDLL(None, use_errno=True); "
    "libc.syscall(469, -100, b'.env', bytes(32), 32, 0) and (_ for _ in ()).throw(OSError(ctypes.get_errno(), 'no'))",
}


@pytest.mark.parametrize("change", METADATA)
async def test_where_nothing_may_change_modes_owners_and_times_stay_and_it_is_said_which_right_lacks(
    box: Box, change: str
) -> None:
    file = box.root / ".env"
    before = file.stat()
    profile = replace(box.profile(), change_root=False)
    status, output = await box.run(f'python3 -c "import os; {METADATA[change]}"', profile)
    assert status == 1
    assert "PermissionError: [Errno 13] " in output
    now = file.stat()
    assert (now.st_mode, now.st_uid, now.st_mtime_ns) == (before.st_mode, before.st_uid, before.st_mtime_ns)
    if "'.env'" in output:  # some calls name no file
        denial = find_denial(output, profile, Backend.LANDLOCK)
        assert (denial and (denial.right, denial.target)) == (Right.WRITE, str(box.root))
    asks = f"import fcntl, os; fcntl.ioctl(os.open('.env', os.O_RDONLY), {_GET_FLAGS}, bytes(8)); print('read')"
    assert await box.run(f'python3 -c "{asks}"', profile) == (0, "read\n"), "they can be read"
    assert await box.run("touch new && chmod +x new") == (0, ""), "where it may change they are free"


async def test_there_is_no_network(box: Box) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        line = f"python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {port}), 5); print(1)'"
        status, output = await box.run(line)
        assert (status, output.endswith("Operation not permitted\n")) == (1, True)
        assert await box.run(line, replace(box.profile(), network=True)) == (0, "1\n")


async def test_other_processes_are_out_of_reach(box: Box) -> None:
    assert (await box.run(f"cat /proc/{os.getpid()}/environ"))[0] == 1
    assert (await box.run("grep NoNewPrivs /proc/self/status"))[1] == "NoNewPrivs:\t1\n"
    assert await box.run('mktemp >/dev/null && echo "$TMPDIR"') == (0, f"{box.folder}/tmp\n")


async def test_a_further_folder_of_the_workspace_is_free_but_for_what_is_protected(box: Box) -> None:
    other = box.folder / "other"
    (other / "sub").mkdir(parents=True)
    (other / ".git").mkdir()
    free = replace(box.profile(), roots=(str(other),))
    assert await box.run(f"echo x > {other}/new", free) == (0, "")
    kept = replace(free, protected=(f"{other}/.git",))
    for line in (f"touch {other}/.git/hooks", f"mv {other}/.git {other}/g", f"echo x > {box.folder}/outside"):
        assert (await box.run(line, kept))[0] == 1, line
    assert await box.run(f"echo x > {other}/sub/new; echo x > new", kept) == (0, "")
    assert (await box.run(f"echo x > {other}/late", replace(free, change_root=False)))[0] == 1

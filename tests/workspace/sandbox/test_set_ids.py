"""No command leaves a file that another user of the machine could run with the rights of its owner."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.workspace.sandbox.running import Box

from treadle.workspace.sandbox import SandboxState

CALLS = {
    "chmod": "os.chmod(plain(), M)",
    "fchmod": "os.fchmod(os.open(plain(), os.O_RDONLY), M)",
    "fchmodat": "os.chmod(plain(), M, dir_fd=os.open('.', os.O_RDONLY))",
    "fchmodat2": "l.syscall(452, -100, plain().encode(), M, 0) and no()",
    "open": "os.open(new(), os.O_CREAT | os.O_WRONLY, M)",
    "openat": "os.open(new(), os.O_CREAT | os.O_RDWR | os.O_EXCL, M, dir_fd=os.open('.', os.O_RDONLY))",
    "openat2": "l.syscall(437, -100, new().encode(), HOW, 24) < 0 and no()",
    "a file without a name": "f = os.open('.', os.O_TMPFILE | os.O_WRONLY, M); link(f) and no()",
    "mknod": "os.mknod(new(), M | stat.S_IFREG)",
    "mknodat": "os.mknod(new(), M | stat.S_IFREG, dir_fd=os.open('.', os.O_RDONLY))",
    "install": "subprocess.run(['install', '-m', f'{M:o}', '/bin/true', new()], check=True)",
    "copy": "subprocess.run(['cp', '-p', old(), new()], check=True)",
    "unpack": "a = tarfile.TarFile('a.tar', 'w'); i = tarfile.TarInfo('made/x'); i.mode = M; a.addfile(i); a.close(); "
    "subprocess.run(['tar', '-xpf', 'a.tar'], check=True)",
    "capabilities": "os.setxattr(plain(), 'security.capability', bytes.fromhex('01000002' + 'ff' * 16))",
}
SCRIPT = """
import ctypes, os, stat, struct, subprocess, sys, tarfile
l = ctypes.CDLL(None, use_errno=True)
M = int(sys.argv[1], 8)
os.umask(0)
HOW = struct.pack('QQQ', os.O_CREAT | os.O_WRONLY, M, 0)
def no(): raise OSError
def link(f): return l.linkat(-100, f'/proc/self/fd/{f}'.encode(), -100, b'made/x', 0x400)
def plain(): return 'plain'
def new(): return 'made/x'
def old(): return 'old'
os.makedirs('made', exist_ok=True)
"""
MODES = ("4755", "2755", "6711", "4000")


@pytest.fixture(params=["bubblewrap", "landlock"])
def box(request: pytest.FixtureRequest, tmp_path: Path) -> Box:
    from tests.workspace.sandbox import running

    state: Callable[[], SandboxState] = getattr(running, request.param)
    root = tmp_path / "work"
    root.mkdir()
    (root / "plain").write_text("x")
    (root / "old").write_text("x")
    (root / "old").chmod(0o6755)
    return Box(tmp_path, state())


def _acting(root: Path) -> list[str]:
    """Name the files that another user would run as somebody else."""
    files = [path for path in root.rglob("*") if path.is_file() and path.name != "old"]
    return [path.name for path in files if path.stat().st_mode & 0o6000 or "security.capability" in os.listxattr(path)]


@pytest.mark.parametrize("name", CALLS)
async def test_no_call_gives_a_file_more_than_its_user_has(box: Box, name: str) -> None:
    (box.root / "s.py").write_text(SCRIPT + CALLS[name])
    for mode in MODES:
        status, said = await box.run(f"python3 s.py {mode}")
        assert _acting(box.root) == [], (mode, status, said)


@pytest.mark.parametrize("name", [one for one in CALLS if one not in ("copy", "capabilities", "fchmodat2", "openat2")])
async def test_other_modes_are_given_as_ever(box: Box, name: str) -> None:
    (box.root / "s.py").write_text(SCRIPT + CALLS[name])
    assert (await box.run("python3 s.py 1751"))[0] == 0
    made = [path for path in box.root.rglob("*") if path.is_file() and path.stat().st_mode & 0o777 == 0o751]
    assert len(made) == 1


@pytest.mark.parametrize("shared", ["work", "work/.git"])
async def test_folders_of_a_shared_group_pass_their_bit_on(box: Box, shared: str) -> None:
    (box.root / ".git").mkdir()
    line = "mkdir d && chmod 2775 d && test -g d"
    assert (await box.run(line))[0] != 0
    (box.folder / shared).chmod(0o2775)
    assert (await box.run(f"rm -rf d; {line}"))[0] == 0
    assert (await box.run("chmod u+s plain"))[0] != 0


async def test_a_file_that_is_opened_without_being_made_has_any_word_for_a_mode(box: Box) -> None:
    line = "l.syscall(257 if os.uname().machine == 'x86_64' else 56, -100, b'plain', 0, 0o6755) < 0 and no()"
    (box.root / "s.py").write_text(SCRIPT + line)
    assert (await box.run("python3 s.py 0"))[0] == 0

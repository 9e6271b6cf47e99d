"""Ways out of bubblewrap that a command may try: kinds of sockets, mounts, nested masks."""

import os
import socket
from pathlib import Path

import pytest
from tests.workspace.sandbox.running import Box, bubblewrap

from treadle.protocol.tools import Right, SandboxDenial
from treadle.workspace.sandbox import allow, confine


@pytest.fixture
def box(tmp_path: Path) -> Box:
    (tmp_path / "work").mkdir()
    return Box(tmp_path, bubblewrap())


def _socket(family: int, then: str = "") -> str:
    return f"python3 -c 'import socket; s = socket.socket({family}, socket.SOCK_STREAM){then}'"


_FAMILIES = """
import socket
for family in (1, 2, 3, 10, 16, 30, 38, 40):
    try:
        socket.socket(family, 3 if family == 16 else 1).close()
        print(family)
    except OSError as error:
        assert error.errno == 97, error
one, other = socket.socketpair()
one.send(b"x")
"""


async def test_sockets_that_know_no_namespaces_cannot_be_made(box: Box) -> None:
    """A virtual machine reaches its host by AF_VSOCK (40), whatever its network is."""
    (box.root / "families.py").write_text(_FAMILIES)
    with_network = allow(box.profile(), SandboxDenial(right=Right.NETWORK))
    for profile in (box.profile(), with_network):
        assert await box.run("python3 families.py", profile) == (0, "1\n2\n10\n16\n")


async def test_abstract_sockets_of_other_programs_stay_out_of_reach_with_the_network(box: Box) -> None:
    if confine.version() < confine.LEAST_FOR_SCOPES:
        pytest.skip("the kernel's Landlock knows no scopes")
    name = f"treadle-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"\0{name}")
        server.listen()
        line = _socket(socket.AF_UNIX, f'; s.connect("\\0{name}")')
        status, output = await box.run(line, allow(box.profile(), SandboxDenial(right=Right.NETWORK)))
    assert (status, "not permitted" in output) == (1, True)


async def test_its_own_abstract_sockets_work_with_the_network(box: Box) -> None:
    line = 'a = socket.socket(1); a.bind("\\0own"); a.listen(); socket.socket(1).connect("\\0own"); print("through")'
    network = allow(box.profile(), SandboxDenial(right=Right.NETWORK))
    assert await box.run(f"python3 -c 'import socket; {line}'", network) == (0, "through\n")


async def test_nothing_is_mounted_and_no_descriptor_is_taken(box: Box) -> None:
    calls = "[(c.syscall(number, -1, 0, 0), ctypes.get_errno()) for number in (428, 429, 430, 438, 442)]"
    program = f"import ctypes; c = ctypes.CDLL(None, use_errno=True); print(set({calls}))"
    assert await box.run(f"python3 -c '{program}'") == (0, "{(-1, 1)}\n")


async def test_a_masked_folder_may_hold_what_is_masked_too(box: Box) -> None:
    (box.root / "keys").mkdir()
    (box.root / "keys" / "one.pem").write_text("secret")
    profile = box.profile(masked=("keys", "keys/one.pem"))
    assert await box.run("ls -A keys; echo ended", profile) == (0, "ended\n")

"""Denials as real programs tell of them, under each sandbox; and what only looks like one."""

import http.server
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.needed import needs
from tests.workspace.sandbox.running import Box, bubblewrap, landlock

from treadle.protocol.tools import Right, SandboxDenial
from treadle.workspace.commands.confinement import describe_denial
from treadle.workspace.sandbox import Backend, Profile, SandboxState, allow, find_denial
from treadle.workspace.sandbox.outside import Outside, PathAccess, listens, look_at

PROFILE = Profile(root="/w", protected=("/w/.git", "/w/AGENTS.md"), masked=("/h/.ssh",), tmp="/p/tmp", private="/p")
NETWORK = SandboxDenial(right=Right.NETWORK)
NEVER = SandboxDenial(right=Right.UNSANDBOXED)
OURS = {"/", "/h", "/h/.ssh", "/h/.ssh/id_rsa", "/h/go", "/tmp", "/tmp/notes", "/w", "/w/AGENTS.md", "/w/.git"}
FILES = {"/h/.ssh/id_rsa", "/w/AGENTS.md", "/tmp/notes", "/tmp/.socket"}


def fake(path: str) -> PathAccess | None:
    """A system where /usr and /etc are root's, and nothing else is."""
    if path in ("/usr", "/usr/lib", "/etc", "/etc/hosts"):
        return PathAccess(is_folder=path != "/etc/hosts", is_socket=False, readable=True, writable=False)
    if path not in OURS | FILES:
        return None
    return PathAccess(is_folder=path not in FILES, is_socket=path == "/tmp/.socket", readable=True, writable=True)


OUTSIDE = Outside(look_at=fake, listens=lambda port: port == 5432, entries=lambda _: [])


def writing(path: str) -> SandboxDenial:
    return SandboxDenial(right=Right.WRITE, target=path)


def reading(path: str) -> SandboxDenial:
    return SandboxDenial(right=Right.READ, target=path)


def found(output: str, profile: Profile, backend: Backend, outside: Outside = OUTSIDE) -> SandboxDenial | None:
    """Look for a denial, and see that it shows the line that told of it."""
    denial = find_denial(output, profile, backend, outside)
    if denial is None:
        return None
    assert denial.text
    assert denial.text in output
    return msgspec.structs.replace(denial, text="")


@pytest.mark.parametrize(
    ("output", "denial"),
    [
        ("bash: line 1: .git/config: Read-only file system", writing("/w/.git")),
        ("touch: cannot touch '/h/go/pkg/x': Read-only file system", writing("/h/go")),
        ("OSError: [Errno 30] Read-only file system: 'AGENTS.md'", writing("/w/AGENTS.md")),
        ("failed to create `/h/go/x`\n\nCaused by:\n  Read-only file system (os error 30)", writing("/h/go")),
        ("npm error EROFS: read-only file system, mkdir '/h/.npm/_cacache'", writing("/h/.npm/_cacache/")),
        ("OSError: [Errno 30] Read-only file system: '/h/.toolrc'", writing("/h/.toolrc")),
        ("touch: cannot touch '/h/.ssh/new': Read-only file system", writing("/h/.ssh/new")),
        ("bash: line 1: /h/go: Read-only file system", writing("/h/go")),
        ("first\ncurl: (6) Could not resolve host: example.org\nlast", NETWORK),
        ("OSError: [Errno 101] Network is unreachable", NETWORK),
        ("npm error code EAI_AGAIN\nnpm error getaddrinfo EAI_AGAIN registry", NETWORK),
        ("Temporary failure resolving 'deb.debian.org'", NETWORK),
        ("error: failed to lookup address information: Try again", NETWORK),
        (
            'connection to server at "localhost" (127.0.0.1), port 5432 failed: Connection refused',
            NETWORK,
        ),
        ("Error: connect ECONNREFUSED 127.0.0.1:5433", None),
        ("cat: /h/.ssh/id_rsa: Permission denied", reading("/h/.ssh")),
        ("cat: /h/.ssh/id_rsa: No such file or directory", reading("/h/.ssh")),
        ("cat: /h/.ssh/nothing: No such file or directory", None),
        ("cat: /tmp/notes: No such file or directory", reading("/tmp/notes")),
        ("cat: /tmp/other: No such file or directory", None),
        ("connect to /tmp/.socket: No such file or directory", NEVER),
        ("Cannot connect to the Docker daemon at unix:///var/run/docker.sock.", NEVER),
        ("strace: ptrace(PTRACE_TRACEME, ...): Operation not permitted", NEVER),
        ("unshare: unshare failed: Operation not permitted", NEVER),
        ("chown: changing ownership of 'x': Operation not permitted", None),
        ("touch: cannot touch '/etc/hosts': Read-only file system", None),
        ("touch: cannot touch '/proc/x': Read-only file system", None),
        ("bash: ./script: Permission denied", None),
        ("bash: foo: command not found", None),
        ("AssertionError: 1 != 2", None),
        ("", None),
    ],
)
def test_a_denial_names_the_right_that_lacked(output: str, denial: SandboxDenial | None) -> None:
    assert found(output, PROFILE, Backend.BUBBLEWRAP) == denial


HOME = Profile(root="/h/w", hidden=("/h",), readable=("/h/go",), tmp="/p/tmp", private="/p")


@pytest.mark.parametrize(
    ("output", "denial"),
    [
        ("cat: /h/.ssh/id_rsa: No such file or directory", reading("/h/.ssh/id_rsa")),
        ("bash: line 1: /h/.ssh/new: No such file or directory", writing("/h/.ssh/new")),
        ("touch: cannot touch '/h/.ssh/new': No such file or directory", writing("/h/.ssh/new")),
        ("mkdir: cannot create directory '/h/.ssh/new': No such file or directory", writing("/h/.ssh/new/")),
        (
            "p.write_text('x')\nFileNotFoundError: [Errno 2] No such file or directory: '/h/.ssh/id_rsa'",
            writing("/h/.ssh/id_rsa"),
        ),
        ("cat: /h/.ssh/nothing: No such file or directory", None),
        ("touch: cannot touch '/h/new': No such file or directory", None),
        ("touch: cannot touch '/h/go/d/new': No such file or directory", None),
        ("touch: cannot touch '/h/w/d/new': No such file or directory", None),
        ("touch: cannot touch '/h/.ssh/d/e/new': No such file or directory", None),
    ],
)
def test_in_a_hidden_home_what_lacked_is_told_by_what_is_there(output: str, denial: SandboxDenial | None) -> None:
    assert found(output, HOME, Backend.BUBBLEWRAP) == denial


def test_landlock_has_other_words_for_the_same() -> None:
    line = "touch: cannot touch '/h/go/x': Permission denied"
    assert found(line, PROFILE, Backend.BUBBLEWRAP) is None
    assert found(line, PROFILE, Backend.LANDLOCK) == writing("/h/go")
    before = "    open('/h/.ssh/id_rsa', 'w')\n"
    line = "PermissionError: [Errno 13] Permission denied: '/h/.ssh/id_rsa'"
    assert found(line, HOME, Backend.LANDLOCK) == reading("/h/.ssh/id_rsa")
    assert found(before + line, HOME, Backend.LANDLOCK) == writing("/h/.ssh/id_rsa")
    traceback = "  self.sock = socket.socket()\nPermissionError: [Errno 1] Operation not permitted"
    assert found(traceback, PROFILE, Backend.BUBBLEWRAP) is None
    assert found(traceback, PROFILE, Backend.LANDLOCK) == NETWORK
    assert found("PermissionError: [Errno 1] Operation not permitted", PROFILE, Backend.LANDLOCK) is None


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ("touch: cannot touch 'new': Permission denied", "/w/new"),
        ("/usr/bin/bash: line 1: new.txt: Permission denied", "/w/new.txt"),
        ("PermissionError: [Errno 13] Permission denied: 'new.py'", "/w/new.py"),
        ("mkdir: cannot create directory ‘made’: Permission denied", "/w/made"),
        ("fatal: Unable to create '/w/.git/index.lock': Permission denied", "/w/.git/index.lock"),
        ("touch: cannot touch 'src/new': Permission denied", ""),
    ],
)
def test_landlock_makes_nothing_beside_what_is_protected_and_says_so(line: str, path: str) -> None:
    profile = replace(PROFILE, change_root=True, protected=("/w/AGENTS.md", "/w/.git/hooks"))
    denied = msgspec.structs.replace(NEVER, target=path)
    assert found(line, profile, Backend.LANDLOCK) == (denied if path else None)
    assert found(line, profile, Backend.BUBBLEWRAP) is None
    assert path == "" or path in describe_denial(denied)


@pytest.mark.parametrize(
    "output", ["x: Could not resolve host: y", "bash: .git/config: Read-only file system", "cat: /tmp/notes: ENOENT"]
)
def test_what_was_allowed_is_not_named_again(output: str) -> None:
    denial = found(output, PROFILE, Backend.BUBBLEWRAP)
    assert denial is not None
    assert found(output, allow(PROFILE, denial), Backend.BUBBLEWRAP) is None


@settings(max_examples=100)
@given(st.text(), st.sampled_from(Backend))
def test_any_output_can_be_looked_through(output: str, backend: Backend) -> None:
    find_denial(output, PROFILE, backend)


@pytest.fixture(params=[bubblewrap, landlock])
def box(request: pytest.FixtureRequest, tmp_path: Path) -> Box:
    state: Callable[[], SandboxState] = request.param
    (tmp_path / "work" / "sub").mkdir(parents=True)
    (tmp_path / "work" / ".git").mkdir()
    return Box(tmp_path, state())


@pytest.fixture
def beside() -> Iterator[Path]:
    """A folder outside of the workspace that is not hidden whole, as /tmp is."""
    with tempfile.TemporaryDirectory(dir=Path.home(), prefix="treadle-test-") as folder:
        (Path(folder) / "secret").write_text("told")
        yield Path(folder)


@pytest.fixture
def server() -> Iterator[int]:
    with http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler) as served:
        thread = threading.Thread(target=served.serve_forever)
        thread.start()
        yield served.server_port
        served.shutdown()
        thread.join()


async def denied(box: Box, line: str, profile: Profile) -> SandboxDenial | None:
    """Run a line that fails, and look for the denial in what it says."""
    status, output = await box.run(line, profile)
    assert status not in (0, None), output
    assert box.state.backend is not None
    return found(output, profile, box.state.backend, Outside())


@pytest.mark.parametrize(
    "line",
    [
        "echo x > {beside}/new",
        "touch {beside}/new",
        "mkdir {beside}/new",
        "cp .git/HEAD {beside}/new 2>&1 || touch {beside}/new",
        "python3 -c \"open('{beside}/new', 'w')\"",
        'perl -e \'open(F, ">", "{beside}/new") or die "{beside}/new: $!"\'',
        "install -m 600 /dev/null {beside}/new",
        "git init -q {beside}/new",
        "tee {beside}/new < /dev/null",
        "sed -i s/told/x/ {beside}/secret",
    ],
)
async def test_a_write_outside_is_recognised_and_passes_with_its_right(box: Box, beside: Path, line: str) -> None:
    line = line.format(beside=beside)
    denial = await denied(box, line, box.profile())
    assert denial == writing(str(beside))
    ended = await box.run(line, allow(box.profile(), denial))
    assert ended[0] == 0, ended


async def test_a_protected_path_is_recognised_and_passes_with_its_right(box: Box) -> None:
    profile = box.profile(".git", "AGENTS.md")
    denial = await denied(box, "echo x > .git/config", profile)
    assert denial == writing(f"{profile.root}/.git")
    assert (await box.run("echo x > .git/config", allow(profile, denial)))[0] == 0
    assert await denied(box, "echo x > .git/more", replace(profile, writable=("/nowhere",))) == denial


async def test_a_masked_file_is_recognised_and_passes_with_its_right(box: Box, beside: Path) -> None:
    profile = replace(box.profile(), masked=(str(beside),))
    denial = await denied(box, f"cat {beside}/secret", profile)
    assert denial == reading(str(beside))
    assert await box.run(f"cat {beside}/secret", allow(profile, denial)) == (0, "told")


async def test_a_file_in_a_hidden_folder_is_recognised_and_passes_with_its_right(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    box, notes = Box(tmp_path, bubblewrap()), tmp_path / "notes"
    notes.write_text("told")
    denial = await denied(box, f"cat {notes}", box.profile())
    assert denial == reading(str(notes))
    assert await box.run(f"cat {notes}", allow(box.profile(), denial)) == (0, "told")


@pytest.mark.parametrize(
    "line",
    [
        "python3 -c 'import socket; socket.create_connection((\"192.0.2.1\", 80), 5)'",
        "python3 -c 'import urllib.request as r; r.urlopen(\"http://example.invalid/\")'",
        "git ls-remote https://example.invalid/x",
        pytest.param("curl -sS http://example.invalid/", marks=needs("curl")),
    ],
)
async def test_the_network_is_recognised(box: Box, line: str) -> None:
    assert await denied(box, line, box.profile()) == NETWORK


@needs("curl")
async def test_a_server_of_this_machine_is_recognised_and_reached_with_the_right(box: Box, server: int) -> None:
    line = f"curl -sS -o /dev/null http://127.0.0.1:{server}/"
    denial = await denied(box, line, box.profile())
    assert denial is not None
    assert denial == NETWORK
    assert (await box.run(line, allow(box.profile(), denial)))[0] == 0


@pytest.mark.parametrize(
    "line",
    [
        "false",
        "cat missing",
        "echo x > missing/file",
        "touch script && ./script",
        pytest.param("curl -sS http://127.0.0.1:9/", marks=needs("curl")),
        "python3 -c 'raise OSError(1, \"Operation not permitted\")'",
        'python3 -c \'assert "permission denied" == ""\'',
        "ls /tmp/there-is-no-such-thing",
        "grep nothing .git/HEAD",
        "exit 13",
    ],
)
async def test_a_failure_of_its_own_is_no_denial(box: Box, line: str) -> None:
    (box.root / ".git" / "HEAD").write_text("ref")
    assert await denied(box, line, box.profile()) is None


def test_what_is_outside_is_seen(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as there:
        port = there.getsockname()[1]
        assert listens(port)
    assert not listens(port)
    assert look_at(str(tmp_path / "nothing")) is None
    outside = Outside()
    assert outside.folder(str(tmp_path / "a" / "b")) == str(tmp_path)
    assert outside.can_write(str(tmp_path / "a" / "b"))


@pytest.mark.parametrize("backend", [Backend.BUBBLEWRAP, Backend.LANDLOCK])
def test_only_the_workspace_itself_is_no_danger_to_write(backend: Backend) -> None:
    looks = replace(PROFILE, change_root=False)
    words = {Backend.BUBBLEWRAP: "Read-only file system", Backend.LANDLOCK: "Permission denied"}[backend]
    for path, dangerous in {"/w/new": False, "/w/AGENTS.md": True, "/w/.git": True, "/h/go": True}.items():
        denial = find_denial(f"bash: line 1: {path}: {words}", looks, backend, OUTSIDE)
        assert denial is not None
        assert (denial.right, denial.dangerous) == (Right.WRITE, dangerous), path

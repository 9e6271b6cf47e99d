"""Many names and many ways to spell them, by the policy alone and on a real disk: none is judged too leniently."""

import os
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.policy.views import ROOT, context
from treadle.app.security.file_view import DiskView
from treadle.policy.decision_context import PolicyContext
from treadle.policy.findings import PathOp
from treadle.policy.path_check import Where, check_path
from treadle.policy.policy_rows import answer_row
from treadle.protocol.permissions import Mode

READ, WRITE = PathOp.READ, PathOp.WRITE
_NAMES = Path(__file__).with_name("names")


def _listed(name: str) -> list[str]:
    return (_NAMES / f"{name}.txt").read_text().splitlines()


def _others(name: str, wanted: Where, *ops: PathOp) -> list[tuple[str, PathOp, Where]]:
    judged = ((path, op, check_path(path, op, ROOT, context()).where) for path in _listed(name) for op in ops)
    return [each for each in judged if each[2] is not wanted]


def test_no_secret_is_read_or_written_unasked_whatever_its_name() -> None:
    assert _others("secrets", Where.PROTECTED, READ, WRITE) == []


def test_no_control_file_is_written_unasked_whatever_its_name() -> None:
    assert _others("control", Where.PROTECTED, WRITE) == []


def test_names_that_only_look_like_them_are_ordinary() -> None:
    assert _others("ordinary", Where.INSIDE, READ, WRITE) == []


@pytest.fixture
def ground(tmp_path: Path) -> Iterator[Path]:
    """A workspace `ws` beside `other` and `home`, with links of every kind, a pipe, a socket and a hard link."""
    for name in ("ws/src", "ws/sub", "ws/.git/hooks", "ws-evil", "other", "home/.ssh"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("ws/src/main.py", "ws/.env", "other/x.txt", "home/.ssh/id_rsa", "ws-evil/x"):
        (tmp_path / name).write_text("x")
    links = {
        "out": str(tmp_path / "other"), "file": str(tmp_path / "other/x.txt"), "rel": "../other", "in": "src",
        "loop": "loop", "a": "b", "b": "a", "one": "two", "two": "sub/three", "sub/three": "../../other",
        "notes.txt": ".env", ".env.sample": ".env", "id_rsa.pub": "../home/.ssh/id_rsa", "new": "../other/new",
        "gate": ".git/hooks", "here": ".", "up": "..", "cwd": "/proc/self/cwd", "root": "/proc/self/root",
        "fd": "/proc/self/fd/0", "null": "/dev/null", "thread": "/proc/thread-self/root",
    }  # fmt: skip
    for name, target in links.items():
        (tmp_path / "ws" / name).symlink_to(target)
    (tmp_path / "alias").symlink_to("ws")
    (tmp_path / "ws/hard").hardlink_to(tmp_path / "other/x.txt")
    os.mkfifo(tmp_path / "ws/pipe")
    with closing(socket.socket(socket.AF_UNIX)) as listening:
        here = Path.cwd()
        os.chdir(tmp_path / "ws")
        try:
            listening.bind("socket")
            yield tmp_path
        finally:
            os.chdir(here)


def _judged(paths: list[str], op: PathOp, ground: Path) -> dict[str, tuple[str, str]]:
    """Where each path leads, and what is decided about it."""
    surroundings = PolicyContext(
        mode=Mode.ASK, roots=(str(ground / "ws"),), files=DiskView(), home=str(ground / "home")
    )
    rows = {path: {"path": path.replace("$R", str(ground)), "op": op.value} for path in paths}
    answers = {path: answer_row(row, surroundings) for path, row in rows.items()}
    return {path: (answer["where"], answer["verdict"]) for path, answer in answers.items()}


@pytest.mark.parametrize("op", [READ, WRITE])
def test_nothing_outside_is_reached_by_spelling_or_by_links(ground: Path, op: PathOp) -> None:
    paths = _listed("outside")
    judged = _judged(paths, op, ground)
    assert {path: found for path, found in judged.items() if found[0] == "inside" or found[1] == "ALLOW"} == {}


@pytest.mark.parametrize("op", [READ, WRITE])
def test_links_and_spellings_that_stay_inside_are_ordinary(ground: Path, op: PathOp) -> None:
    paths = "src/main.py in/main.py $R/alias/src/main.py here/here/src/x up/ws/src/main.py ./src//main.py src/../src/x"
    judged = _judged(paths.split(), op, ground)
    assert {found[0] for found in judged.values()} == {"inside"}


def test_a_harmless_name_does_not_open_a_secret_or_a_hook(ground: Path) -> None:
    reads = _judged(["notes.txt", ".env.sample", "id_rsa.pub", "here/.env", "src\\..\\.env"], READ, ground)
    writes = _judged(["gate/pre-commit", "here/.git/config", "in/../.git/x"], WRITE, ground)
    assert {*reads.values(), *writes.values()} == {("protected", "REQUIRE_USER_CONFIRMATION")}


@pytest.mark.parametrize(
    ("cwd", "where"),
    [("src", "inside"), ("../ws/src", "inside"), ("out", "outside"), ("..", "outside"), ("~", "outside"),
     ("a\0b", "outside"), ("a\u202eb", "protected"), ("/proc/self/cwd", "protected"), ("src/../.ssh", "protected")],
)  # fmt: skip
def test_a_relative_path_is_judged_from_its_directory(ground: Path, cwd: str, where: str) -> None:
    surroundings = PolicyContext(
        mode=Mode.ASK, roots=(str(ground / "ws"),), files=DiskView(), home=str(ground / "home")
    )
    answer = answer_row({"path": "x", "op": "read", "cwd": cwd}, surroundings)
    assert (answer["where"], answer["verdict"] == "ALLOW") == (where, where == "inside")


@pytest.mark.parametrize("root", ["/srv/repo/.git", "/srv/repo/.git/hooks", "/srv/keys/.ssh"])
def test_a_workspace_among_protected_files_protects_them(root: str) -> None:
    inside = context(roots=(root,))
    assert check_path("config", WRITE, root, inside).where is Where.PROTECTED

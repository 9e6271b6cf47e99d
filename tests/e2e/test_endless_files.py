"""What Treadle reads of a folder by itself is never waited for and never read without an end: pipes and devices."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.faults.driving import Worked, make, run, work
from tests.ready import treadle

READ = (
    ".treadle/config.toml",
    ".treadle/policy.toml",
    ".treadle/AGENTS.md",
    ".treadle/agents/one.md",
    ".treadle/commands/one.md",
    ".treadle/rules/one.md",
    ".treadle/skills/one/SKILL.md",
    ".treadle/hooks/PreToolUse",
    ".treadleignore",
    ".clineignore",
    ".clinerules/one.md",
    ".clinerules/workflows/one.md",
    ".claude/settings.json",
    ".claude/agents/one.md",
    ".claude/commands/one.md",
    ".claude/skills/one/SKILL.md",
    ".cursor/rules/one.mdc",
    ".github/copilot-instructions.md",
    ".mcp.json",
    ".gitignore",
    "src/.gitignore",
    "AGENTS.md",
    "CLAUDE.md",
    "src/AGENTS.md",
    "pyproject.toml",
    "package.json",
    "requirements.txt",
    ".venv/pyvenv.cfg",
)
OF_GIT = (".git/info/exclude", ".git/config", ".git/HEAD", ".git/index", ".git/packed-refs")


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def _fill(folder: Path, names: tuple[str, ...], write: Callable[[Path], None]) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        write(path)


STEPS = (make("list_files", path=".", recursive=True), make("write_to_file", path="a.txt", content="a\n"), run("ls"))
BOUNDED = ("sh", "-c", 'ulimit -v 3000000; exec "$@"', "-")


TRUST = pytest.mark.parametrize("trust", [(), ("--trust",)], ids=["untrusted", "trusted"])
WRITE = pytest.mark.parametrize("write", [_pipe, _endless])
REFUSED = (".treadle/config.toml", ".treadle/policy.toml")
"""With these nothing is done until a person has looked."""


async def _worked(
    tmp_path: Path, names: tuple[str, ...], write: Callable[[Path], None], trust: tuple[str, ...]
) -> Worked:
    folder = tmp_path / "ws"
    (folder / "src").mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    _fill(folder, names, write)
    return await work(tmp_path, *STEPS, flags=trust, command=(*BOUNDED, *treadle()))


@TRUST
@WRITE
@pytest.mark.parametrize(
    "names",
    [
        tuple(name for name in READ if name not in REFUSED),
        *(pytest.param((name,), marks=pytest.mark.soak) for name in (*READ, *OF_GIT) if name not in REFUSED),
    ],
    ids=lambda names: names[0] if len(names) == 1 else "all",
)
async def test_work_is_done_beside_files_that_never_end(
    tmp_path: Path, names: tuple[str, ...], write: Callable[[Path], None], trust: tuple[str, ...]
) -> None:
    worked = await _worked(tmp_path, names, write, trust)
    assert worked.ended.code == 0, worked.ended.err
    assert (tmp_path / "ws" / "a.txt").read_text() == "a\n"
    assert "a.txt" in worked.results[-1]


@WRITE
@pytest.mark.parametrize("name", REFUSED)
async def test_settings_and_rules_that_are_no_files_are_named(
    tmp_path: Path, name: str, write: Callable[[Path], None]
) -> None:
    ended = (await _worked(tmp_path, (name,), write, ("--trust",))).ended
    assert ended.code != 0
    assert f"{tmp_path / 'ws' / name} cannot be read" in ended.err
    assert "not a file" in ended.err
    assert "Something went wrong" not in ended.err

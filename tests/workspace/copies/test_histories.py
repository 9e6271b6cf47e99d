"""What a command does to its copy, once applied, is what it would have done to the real files."""

import asyncio
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.needed import needs
from tests.workspace.copies import history
from tests.workspace.copies.copied import Bench, Ran, snapshot

from treadle.protocol.errors import ToolError
from treadle.workspace.copies import apply_changes, nothing_is_held, throw_away

_MADE, _CHANGED = 25, 60
pytestmark = pytest.mark.skipif(
    Path(__file__).is_relative_to("/tmp"),
    reason="this checkout is in /tmp, of which a sandboxed command sees nothing",
)
_WITHOUT_RIGHTS = ("setpriv", "--bounding-set=-all") if os.geteuid() == 0 else ()
"""A command in the sandbox has no capabilities; one that is compared with it has none either."""


Tree = dict[bytes, tuple[object, ...]]


def words(seed: int, count: int, doing: str, program: str = history.__file__) -> tuple[str, ...]:
    return sys.executable, "-I", "-S", program, str(seed), str(count), doing


async def changed(bench: Bench, seed: int) -> tuple[Tree, Path, Ran]:
    """Let one history change a tree in a copy, and a twin bare; gives the tree before, the twin and the run."""
    bare = bench.folder / "bare"
    for root in (bench.root, bare):
        subprocess.run(["chmod", "-R", "u+rwx", root], check=False, capture_output=True)
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir(mode=0o755)
        subprocess.run(words(seed, _MADE, "make"), cwd=root, check=True)
        root.chmod(0o755)
    before = snapshot(bench.root)
    assert before == snapshot(bare)
    subprocess.run((*_WITHOUT_RIGHTS, *words(seed, _CHANGED, "change")), cwd=bare, check=True)
    await asyncio.sleep(0.02)  # a tick of the clock of files, so that the tree is older than the command
    (bench.data / "tmp").mkdir(exist_ok=True)
    shutil.copy(history.__file__, bench.data / "tmp/history.py")  # what the command has as /tmp
    ran = await bench.run(" ".join(words(seed, _CHANGED, "change", "/tmp/history.py")))
    assert ran.status == 0, ran.output
    if os.geteuid() == 0:
        assert snapshot(bench.root) == before, "the real files changed"
    return before, bare, ran


async def check(bench: Bench, seed: int) -> None:
    _, bare, ran = await changed(bench, seed)
    changes = ran.changes()
    assert not changes.trouble
    assert not [change for change in changes.changes if change.held]
    apply_changes(ran.copy, changes.digest, nothing_is_held)
    assert snapshot(bench.root) == snapshot(bare), f"seed {seed}"
    throw_away(ran.copy)


@needs(*_WITHOUT_RIGHTS[:1])
async def test_what_is_applied_equals_a_bare_run(bench: Bench) -> None:
    for seed in range(12):
        await check(bench, seed)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@needs(*_WITHOUT_RIGHTS[:1])
async def test_what_is_applied_equals_a_bare_run_a_thousand_times(bench: Bench) -> None:
    for seed in range(1000, 2000):
        await check(bench, seed)


def is_chosen(path: str, seed: int) -> bool:
    return hashlib.sha256(f"{seed} {path}".encode(errors="surrogateescape")).digest()[0] < 3


async def check_held(bench: Bench, seed: int) -> None:
    before, bare, ran = await changed(bench, seed)

    def hold(path: str, /, *, made: bool = False) -> str:
        return "for a test" if is_chosen(path, seed) else ""

    changes = ran.changes(hold)
    if changes.whole:
        apply_changes(ran.copy, changes.digest, hold)
    else:
        with pytest.raises(ToolError, match="a part of the changes cannot be"):
            apply_changes(ran.copy, changes.digest, hold)
    assert snapshot(bench.root) == (snapshot(bare) if changes.whole else before), f"seed {seed}"
    throw_away(ran.copy)


async def test_all_is_applied_or_nothing_where_a_part_is_held(bench: Bench) -> None:
    for seed in range(100, 104):
        await check_held(bench, seed)


@pytest.mark.soak
@pytest.mark.timeout(3600)
async def test_all_is_applied_or_nothing_in_many_histories(bench: Bench) -> None:
    for seed in range(2000, 2200):
        await check_held(bench, seed)

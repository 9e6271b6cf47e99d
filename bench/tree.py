"""The tools on 100,000 files beside bare ripgrep: time, ratio, and the peak of our memory."""

import asyncio
import resource
import statistics
import subprocess
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from treadle.tools.tool_catalogue import builtin_tools
from treadle.workspace.environment import EnvironmentBlock
from treadle.workspace.workspace import Workspace, open_workspace

_FILES = 100_000
_FOLDERS = 1_000
_REPEATS = 3


def _write(root: Path) -> None:
    for folder in range(_FOLDERS):
        place = root / f"part{folder % 10}" / f"package{folder}"
        place.mkdir(parents=True)
        for number in range(folder, _FILES, _FOLDERS):
            (place / f"module{number}.py").write_text(
                f"def needle_{number}():\n    return {number}\n\n\nclass Thing:\n    x = 1\n"
            )
    (root / ".gitignore").write_text("part9/\n")
    (root / ".git").mkdir()


def _call(workspace: Workspace, name: str, **arguments: Any) -> Callable[[], Awaitable[object]]:
    (tool,) = (tool for tool in builtin_tools(workspace) if tool.spec.name == name)

    async def work() -> object:
        return await (await tool.prepare(arguments)).run(lambda _: None)

    return work


async def _compare(what: str, ours: Callable[[], Awaitable[object]], line: str, root: str) -> None:
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(_REPEATS):
        start = time.perf_counter()
        await ours()
        between = time.perf_counter()
        subprocess.run(["bash", "-c", line], cwd=root, stdout=subprocess.DEVNULL, check=False)
        times[0].append(between - start)
        times[1].append(time.perf_counter() - between)
    mine, theirs = map(statistics.median, times)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{what:<58} {mine:6.2f} s {theirs:6.2f} s {mine - theirs:+6.2f} s {mine / theirs:5.1f} x  {peak:6.1f} MB")


async def _measure(root: Path) -> None:
    workspace = open_workspace(root)
    rg = workspace.search.ripgrep

    async def first() -> object:
        return await EnvironmentBlock(workspace=workspace).describe(first=True, situation=None)

    every = f"{rg} --files"
    await _compare("the first request's file list | rg --files", first, every, workspace.root)
    await _compare(
        "list_files of everything | rg --files",
        _call(workspace, "list_files", path=".", recursive=True),
        every,
        workspace.root,
    )
    rare = _call(workspace, "search_files", path=".", regex="needle_4[0-9]{3}7\\b")
    await _compare("search_files, 900 matches | rg", rare, f"{rg} 'needle_4[0-9]{{3}}7\\b'", workspace.root)
    many = _call(workspace, "search_files", path=".", regex="return")
    await _compare("search_files, a match in each file | rg", many, f"{rg} return", workspace.root)
    none = _call(workspace, "search_files", path=".", regex="nowhere to be found")
    await _compare("search_files, no match | rg", none, f"{rg} 'nowhere to be found'", workspace.root)
    outline = _call(workspace, "list_code_definition_names", path="part0/package10")
    await _compare(
        "list_code_definition_names of a folder | rg ^def",
        outline,
        f"{rg} '^(def|class)' part0/package10",
        workspace.root,
    )
    await workspace.close()


def main() -> None:
    """Print each figure: ours, ripgrep, the difference, the ratio, and the peak of this process so far."""
    with tempfile.TemporaryDirectory() as directory:
        _write(Path(directory, "root"))
        asyncio.run(_measure(Path(directory, "root")))

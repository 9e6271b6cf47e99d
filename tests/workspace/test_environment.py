"""The environment block."""

import asyncio
import platform
from datetime import UTC, datetime
from pathlib import Path

from treadle.workspace.environment import EnvironmentBlock
from treadle.workspace.workspace import Workspace, open_workspace


def _noon() -> datetime:
    return datetime(2026, 5, 4, 12, 0, tzinfo=UTC)


async def test_the_first_block_has_the_system_and_the_files(workspace: Workspace) -> None:
    Path(workspace.root, "src").mkdir()
    Path(workspace.root, "src/a\x1b.py").touch()
    assert await EnvironmentBlock(workspace=workspace, now=_noon).describe(first=True, situation=None) == (
        f"System: {platform.system()} {platform.machine()}, shell {Path(workspace.shell).name}\n"
        f"Workspace: {workspace.root}\n"
        "Time: 2026-05-04 12:00 UTC (UTC+0000)\n"
        "Files:\nsrc/\nsrc/a\\x1b.py"
    )


async def test_later_blocks_have_the_time(workspace: Workspace) -> None:
    surroundings = EnvironmentBlock(workspace=workspace, now=_noon)
    assert await surroundings.describe(first=False, situation=None) == "Time: 2026-05-04 12:00 UTC (UTC+0000)"


async def test_an_empty_workspace_says_so(workspace: Workspace) -> None:
    assert (await EnvironmentBlock(workspace=workspace).describe(first=True, situation=None)).endswith(
        "Files: none yet"
    )


async def test_commands_in_the_background_are_listed(workspace: Workspace) -> None:
    command = workspace.launcher.start("echo up;\nsleep 1000")
    workspace.commands.add(command)
    while not command.unread:
        await asyncio.sleep(0.01)
    block = await EnvironmentBlock(workspace=workspace, now=_noon).describe(first=False, situation=None)
    assert block.split("\n")[1:] == [
        "Command 1 in the background: echo up; sleep 1000 - Still running. It has new output."
    ]


async def test_every_folder_of_the_workspace_is_told_with_its_share_of_the_files(tmp_path: Path) -> None:
    for name in ("ws", "other"):
        (tmp_path / name).mkdir()
        for number in range(150):
            (tmp_path / name / f"f{number:03}").touch()
    workspace = open_workspace(tmp_path / "ws", roots=(str(tmp_path / "other"),))
    block = await EnvironmentBlock(workspace=workspace, now=_noon).describe(first=True, situation=None)
    assert block.split("\n")[1:4] == [
        f"Workspace: {tmp_path}/ws",
        f"Also in the workspace, by absolute paths: {tmp_path}/other",
        "Time: 2026-05-04 12:00 UTC (UTC+0000)",
    ]
    _, own, other = block.split("Files")
    more = "[first 100 entries; list_files shows more]"
    listed = [f"f{number:03}" for number in range(100)]
    assert own.split("\n") == [":", *listed, more, ""]
    assert other.split("\n") == [f" in {tmp_path}/other:", *listed, more]

"""A workspace in a temporary directory, with nothing left running."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.orphans import no_orphans

from treadle.policy.secrets import known_secrets
from treadle.workspace.workspace import Workspace, open_workspace

__all__ = ["no_orphans", "workspace"]


@pytest.fixture
async def workspace(tmp_path: Path) -> AsyncIterator[Workspace]:
    root = tmp_path / "root"
    root.mkdir()
    workspace = open_workspace(root, spool=tmp_path / "spool", hide=known_secrets({}).stream)  # as a session has it
    yield workspace
    await workspace.close()

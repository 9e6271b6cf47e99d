"""A place to serve; no test leaves a process behind."""

from pathlib import Path

import pytest

from tests.mcp_server.serving import Place
from tests.orphans import no_orphans
from tests.ready import ready

__all__ = ["no_orphans", "ready"]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)

"""A place to serve; no test leaves a process behind."""

from pathlib import Path

import pytest

from tests.mcp_server.serving import Place
from tests.orphans import no_orphans

__all__ = ["no_orphans"]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)

"""One session for all tests of the page that need no browser, and a visitor with a copy of it for each."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.web.driving import shared_browser
from tests.web.recorded import Recorded, Visit, record, visiting

__all__ = ["shared_browser"]


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """A session that worked."""
    return record(tmp_path_factory.mktemp("recorded"))


@pytest.fixture
def visit(recorded: Recorded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Visit]:
    """A visitor of the page."""
    with visiting(recorded, tmp_path, monkeypatch) as made:
        yield made

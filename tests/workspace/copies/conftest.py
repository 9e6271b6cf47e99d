from pathlib import Path

import pytest
from tests.workspace.copies.copied import Bench


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """A workspace on whose copies commands can work; skips where they cannot."""
    folder = tmp_path.resolve()
    (folder / "work").mkdir()
    bench = Bench(folder)
    bench.needs_copies()
    return bench

"""Which tools a model is told of."""

import subprocess
import sys
from pathlib import Path

HIDES_PLAYWRIGHT = """
import sys
from importlib.abc import MetaPathFinder
import importlib.util
known = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "playwright" else known(name, *rest)
from treadle.app.session.offering import offering
from treadle.store.sqlite import Store
from pathlib import Path
store = Store(Path(sys.argv[1]))
print(*sorted(offering(["browser_action", "read_file", "apply_patch"], store)("p/m")))
store.close()
"""


def test_a_browser_is_not_offered_where_its_library_is_missing(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HIDES_PLAYWRIGHT, str(tmp_path / "sessions.db")]
    shown = subprocess.run(command, check=True, capture_output=True, text=True)
    assert shown.stdout.split() == ["read_file"]

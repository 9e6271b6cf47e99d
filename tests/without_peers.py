"""A plugin for pytest that does as if no program of others was installed: `-p tests.without_peers`."""

import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

os.environ["TREADLE_TESTS_WITHOUT_PEERS"] = "1"

from tests.needed import PEER_MODULES


class _Blocked:
    """Finds no module of theirs."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name.partition(".")[0] in PEER_MODULES:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return None


sys.meta_path.insert(0, _Blocked())

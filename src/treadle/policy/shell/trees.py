"""What comes along when a folder is copied or moved as a whole."""

import posixpath
from collections.abc import Iterator, Sequence

from treadle.policy.findings import Finding, unclear
from treadle.policy.marks import UNKNOWN, is_static
from treadle.policy.names import control_name, secret_name
from treadle.policy.shell.scene import Scene

MAX_COPIED = 400


def judge_trees(sources: Sequence[str], scene: Scene) -> list[Finding]:
    """Ask where a folder holds protected names, or more than `MAX_COPIED` names to look at."""
    left = MAX_COPIED
    for source in sources:
        if not is_static(source) or scene.cwd == UNKNOWN:
            continue
        for name in _names_below(posixpath.normpath(posixpath.join(scene.cwd, source)), scene):
            left -= 1
            if left < 0:
                return [unclear("unknown-writes", "the folder has too many files to check")]
            protected = control_name(name) or secret_name(name)
            if protected is not None:
                return [unclear("unknown-writes", f"{protected}, which is protected, is in the folder")]
    return []


def _names_below(path: str, scene: Scene) -> Iterator[str]:
    """Give the names in a folder and in those below it, the nearer ones first; the caller stops when it has enough."""
    pending = [path]
    for folder in pending:
        for name in scene.context.files.names(folder):
            yield name
            pending.append(posixpath.join(folder, name))

"""What commands cannot do here that they do elsewhere, said once; this loads nothing of the sandbox itself."""

import sys

_PROBED = "treadle.workspace.sandbox.backend"
_BY_BACKEND = {
    "bubblewrap": "",
    "landlock": "No command runs in a throw-away copy here, or makes a socket: what needs that needs approval.",
    "sandbox-exec": "No command runs in a throw-away copy here, or reaches a server: what needs that needs approval.",
    "": "Nothing confines commands here: those that do more than read need approval.",
}


class Lacking:
    """Says it to one model, as soon as it is known what confines commands here."""

    def __init__(self) -> None:
        self._said = False

    def __call__(self) -> str:
        """Give the line; empty where it is not known yet, where there is nothing to say, or no more."""
        known = None if self._said else _known()
        self._said = self._said or known is not None
        return "" if known is None else lacking(known)


def lacking(backend: str) -> str:
    """Say what commands cannot do with a backend; without a name, with none."""
    return _BY_BACKEND[backend]


def _known() -> str | None:
    if _PROBED not in sys.modules:
        return None
    from treadle.workspace.sandbox.backend import probe

    return str(probe().backend or "") if probe.cache_info().currsize else None

"""What the first reply and the first call need, loaded while the first reply is waited for."""

import time
from importlib import import_module
from threading import Thread

_FOR_REPLIES = ("treadle.providers.http_replies", "treadle.engine.runtime.reply_reader")
_FOR_CALLS = (
    "treadle.app.session.commands.judging",
    "treadle.app.session.known_values",
    "treadle.app.security.confining",
    "treadle.policy.allowances",
    "treadle.policy.disclosure",
    "treadle.tools.read_file",
)
_A_MODEL = 0.1
"""Seconds that no model replies within: what answers sooner is a test, and may call nothing."""


def load_ahead() -> None:
    """Begin to load it; nobody waits for that, also not the end of the program."""
    Thread(target=_load, name="treadle-ahead", daemon=True).start()


def _load() -> None:
    for name in _FOR_REPLIES:
        import_module(name)
    time.sleep(_A_MODEL)
    for name in _FOR_CALLS:
        import_module(name)

"""What is loaded while the first reply is waited for."""

import subprocess
import sys
from importlib.util import find_spec

from treadle.app.models import ahead


def test_everything_that_is_loaded_ahead_is_there() -> None:
    assert [name for name in (*ahead._FOR_REPLIES, *ahead._FOR_CALLS) if find_spec(name) is None] == []


def test_loading_ahead_keeps_nobody_waiting_and_the_policy_is_there_in_the_end() -> None:
    code = (
        "import sys, threading; from treadle.app.models.ahead import load_ahead; load_ahead()\n"
        "(thread,) = [one for one in threading.enumerate() if one.name == 'treadle-ahead']\n"
        "assert thread.daemon\n"
        "thread.join(); print(*sys.modules)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {"treadle.engine.runtime.reply_reader", "treadle.policy.allowances"} <= set(ended.stdout.split())

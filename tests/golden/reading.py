"""Print, as JSON, what this Treadle reads off logs; run with another version on the path.

python -m tests.golden.reading VERSION-NAME ...
"""

import json
import sys
from typing import Any

import msgspec

from tests.fakes.messages import read_transcript
from tests.golden.logs import Golden, golden_logs, read_rows
from treadle.app.reports.session_text import session_lines
from treadle.engine.core.history import read_past
from treadle.protocol.models import ToolProtocol
from treadle.store.sqlite import SessionRow


def read(log: Golden) -> dict[str, Any]:
    """Give what is shown, and what is sent in both tool protocols."""
    events = list(read_rows(log.rows))
    transcript = read_transcript(events)
    title = log.text("show.txt").splitlines()[0].removeprefix("# ")
    last = events[-1]
    row = SessionRow(
        id=log.id,
        workspace=str(log.workspace),
        model="golden/main",
        title=title,
        created_at=0,
        updated_at=0,
        events=last.seq,
    )
    return {
        "show": "\n".join(session_lines(row, events)) + "\n",
        "messages": {str(one): plain(transcript.messages(one)) for one in ToolProtocol},
    }


def read_state(log: Golden) -> Any:
    """Give the state of the session."""
    return plain(read_past(list(read_rows(log.rows))).state)


def plain(value: object) -> Any:
    """Give a value as JSON would bring it back."""
    return json.loads(json.dumps(msgspec.to_builtins(value, order="deterministic")))


if __name__ == "__main__":
    found = {str(log): read(log) for log in golden_logs()}
    states = {str(log): read_state(log) for log in golden_logs() if str(log) in sys.argv[1:]}
    json.dump({"read": found, "states": states}, sys.stdout)

"""Print, as JSON, what this Treadle reads off logs; run with another version on the path.

    python -m tests.golden.reading VERSION-NAME ...
    python -m tests.golden.reading --write

The second writes anew what `treadle show` says of them, after its words were changed on purpose; the logs stay.
"""

import gzip
import json
import sys
from typing import Any

import msgspec

from tests.fakes.messages import read_transcript
from tests.golden.logs import LOGS, WALKS, Golden, Row, golden_logs, read_rows
from treadle.app.reports.session_text import record_lines, session_items, session_lines
from treadle.engine.core.past_history import read_past
from treadle.protocol.events import Event
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


def shown(events: list[Event]) -> list[str]:
    """Give what `treadle show` says of events."""
    return list(record_lines(*session_items(events)))


def write() -> None:
    """Write what is shown of the golden logs, and of the random sessions."""
    for log in golden_logs():
        file = LOGS / log.version / f"{log.name}.show.txt"
        file.write_text(read(log)["show"], encoding="utf-8")
    walks = [json.loads(line) for line in gzip.decompress(WALKS.read_bytes()).splitlines()]
    lines = [json.dumps({**one, "shown": shown(list(read_rows([Row(*row) for row in one["rows"]])))}) for one in walks]
    WALKS.write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode(), mtime=0))


if __name__ == "__main__" and sys.argv[1:] == ["--write"]:
    write()
elif __name__ == "__main__":
    found = {str(log): read(log) for log in golden_logs()}
    states = {str(log): read_state(log) for log in golden_logs() if str(log) in sys.argv[1:]}
    json.dump({"read": found, "states": states}, sys.stdout)

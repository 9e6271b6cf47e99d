"""Show the request of a step, block by block: where each comes from, why it is there, and what it costs."""

import argparse
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from treadle.cli.parser import LAST, named_session, session_operand

if TYPE_CHECKING:
    from treadle.protocol.events import Event


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    session_operand(parser, nargs="?", otherwise=LAST)
    parser.add_argument("--step", type=int, help="the request of this step (by default the last one)")
    parser.add_argument("--next", action="store_true", help="what the next request would hold by now")
    parser.add_argument("--left", action="store_true", help="what the last compaction removed, and what replaced it")
    parser.add_argument("--raw", action="store_true", help="the request itself, as one JSON object")
    parser.add_argument("--json", action="store_true", help="the blocks as one JSON object")


def execute(arguments: argparse.Namespace) -> int:
    """Print the request."""
    from treadle.door.opening import session_log
    from treadle.door.program import harmless
    from treadle.door.reports import context_lines, context_report, model_prices, next_request, sent_request
    from treadle.protocol.codec import encode

    prefix = named_session(arguments.session)
    with session_log(prefix) as (row, store):
        events = list(store.read(row.id, whole=arguments.step is not None))
    if arguments.left:
        return _show_left(events, as_json=arguments.json)
    now = int(time.time() * 1_000)
    sent = next_request(events, now) if arguments.next else sent_request(events, arguments.step)
    if arguments.raw:
        sys.stdout.write(f"{encode(sent.request).decode()}\n")
        return 0
    report = context_report(sent, model_prices(sent.model))
    if arguments.json:
        sys.stdout.write(f"{encode(report).decode()}\n")
    else:
        from treadle.door.reports import left_notes

        lines = [*context_lines(report, sent.model), *left_notes(events, "treadle context --left")]
        sys.stdout.write(harmless("\n".join(lines)) + "\n")
    return 0


def _show_left(events: "Sequence[Event]", *, as_json: bool) -> int:
    from treadle.door.program import harmless
    from treadle.door.reports import left_lines, left_report
    from treadle.protocol.codec import encode

    report = left_report(events)
    text = encode(report).decode() if as_json else harmless("\n".join(left_lines(report)))
    sys.stdout.write(f"{text}\n")
    return 0

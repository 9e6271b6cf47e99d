"""Show the request of a step, block by block: where each comes from, why it is there, and what it costs."""

import argparse
import sys


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("id", nargs="?", default="", help="the session (by default the last one of this folder)")
    parser.add_argument("--step", type=int, help="the request of this step (by default the last one)")
    parser.add_argument("--raw", action="store_true", help="the request itself, as one JSON object")
    parser.add_argument("--json", action="store_true", help="the blocks as one JSON object")


def execute(arguments: argparse.Namespace) -> int:
    """Print the request."""
    from pathlib import Path

    from treadle.app.compose import last_session, session_log
    from treadle.app.reports.context_report import context_lines, context_report, model_prices, sent_request
    from treadle.app.wrapping import harmless
    from treadle.protocol.codec import encode

    prefix = arguments.id or last_session(Path.cwd().resolve())
    with session_log(prefix) as (row, store):
        sent = sent_request(list(store.read(row.id, whole=arguments.step is not None)), arguments.step)
    if arguments.raw:
        sys.stdout.write(f"{encode(sent.request).decode()}\n")
        return 0
    report = context_report(sent, model_prices(sent.model))
    if arguments.json:
        sys.stdout.write(f"{encode(report).decode()}\n")
    else:
        sys.stdout.write(harmless("\n".join(context_lines(report, sent.model))) + "\n")
    return 0

"""Verify that the logs were not changed, or show what was called, decided, answered and run in a session."""

import argparse
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from treadle.cli.parser import session_operand

if TYPE_CHECKING:
    from treadle.door.reports import AuditRecord, Verified


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="verify|show")
    verify = verbs.add_parser("verify", help="check the hash chain of a session, or of all")
    session_operand(verify, nargs="?")
    show = verbs.add_parser("show", help="show the calls of a session and their results")
    session_operand(show)
    for verb in (verify, show):
        verb.add_argument("--json", action="store_true", help="one JSON object a line")


def execute(arguments: argparse.Namespace) -> int:
    """Check or show; the exit code is 1 when a log is not as it was written."""
    if arguments.verb == "verify":
        return _verify(arguments.session, json=arguments.json)
    from treadle.door.reports import audit_session
    from treadle.protocol.codec import encode

    for record in audit_session(arguments.session):
        line = encode(record).decode() if arguments.json else _line(record)
        sys.stdout.write(f"{line}\n")
    return 0


def _verify(prefix: str, *, json: bool) -> int:
    from treadle.door.program import Exit
    from treadle.door.reports import verify_sessions
    from treadle.protocol.codec import encode

    checked = verify_sessions(prefix)
    for one in checked:
        line = encode(one).decode() if json else f"{one.session}  {one.events} events  {_state(one)}  {one.chain}"
        sys.stdout.write(f"{line}\n")
    return Exit.DONE if all(one.intact for one in checked) else Exit.FAILED


def _state(one: "Verified") -> str:
    parts = [f"BROKEN at event {one.broken_at}"] if one.broken_at is not None else []
    if one.missing is not None:
        parts.append(f"CUT: event {one.missing} was written and is missing")
    if one.set_aside:
        parts.append(f"{one.set_aside} damaged set aside")
    return ", ".join(parts) or ("intact" if one.anchored else "intact (its end is not anchored)")


def _line(record: "AuditRecord") -> str:
    from treadle.protocol.codec import encode
    from treadle.workspace.files.text import visible

    at = datetime.fromtimestamp(record.at / 1000, UTC)
    facts = [
        record.tool,
        encode(record.arguments).decode() if record.arguments is not None else "",
        record.verdict or "",
        ", ".join(record.rules),
        record.digest[:16],
        record.why,
        record.answer or "",
        record.outcome or "",
        f"{record.bytes:,} bytes" if record.bytes is not None else "",
    ]
    shown = "  ".join(fact for fact in facts if fact)
    return visible(
        f"{record.seq:>5}  {at:%Y-%m-%d %H:%M:%S}  {record.source}  {record.step}  {record.call_id}  {shown}"
    )

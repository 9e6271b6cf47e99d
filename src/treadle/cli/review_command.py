"""Review what is not committed, a range of git or a diff. The session of a review only reads, and asks nothing.

The exit status is 1 if a finding is an error, and 0 if none is.
"""

import argparse
import asyncio
import sys
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from treadle.cli.work import add_settings
from treadle.protocol.errors import ConfigError, TreadleError

if TYPE_CHECKING:
    from treadle.door.opening import Opening
    from treadle.door.review import ReviewReport
    from treadle.protocol.attach import Stamped

_EFFORTS = ("low", "medium", "high")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    about = "a range of git, such as main...HEAD, or a file with a diff (default: what is not committed)"
    parser.add_argument("range", nargs="?", default="", metavar="RANGE|FILE.diff", help=about)
    parser.add_argument("--staged", action="store_true", help="review what the next commit takes")
    parser.add_argument(
        "--effort",
        choices=_EFFORTS,
        default="medium",
        help="how findings are checked: not at all, by a further turn, by another session (default: medium)",
    )
    parser.add_argument(
        "--session", metavar="SESSION", default="", help="show only what reviews of this session did not show before"
    )
    parser.add_argument(
        "--apply",
        type=int,
        metavar="N",
        help="apply the change of finding N, of SESSION or of the last review in this folder, and review nothing",
    )
    parser.add_argument("--json", action="store_true", help='print {"findings": [...], "cost"}')
    add_settings(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Review, or apply a finding; returns the exit code."""
    from treadle.cli.command_line import session_trust_of

    arguments.resume = ""
    _check(arguments)
    trust = session_trust_of(arguments)
    session = _whole_id(arguments.session)
    if arguments.apply is not None:
        from treadle.door.review import last_reviewed

        return _apply(arguments, session or last_reviewed(trust.workspace), arguments.apply)
    from treadle.door.review import ReviewEffort, changes_in_words, changes_to_review, run_review

    changes = changes_to_review(trust, arguments.range, staged=arguments.staged)
    _say(changes_in_words(changes))
    if not changes.files:
        return _nothing(changes.left_out, as_json=arguments.json)
    report = asyncio.run(
        run_review(
            changes,
            partial(_opening, arguments, mode="plan"),
            effort=ReviewEffort(arguments.effort),
            book=session,
            hears=_Narrator().hear,
            started=lambda session_id, model: _say([f"# session {session_id}, {model}, mode plan"]),
        )
    )
    return _show(report, arguments)


def _check(arguments: argparse.Namespace) -> None:
    """Raise `ConfigError` for what excludes each other."""
    wrong = ""
    if arguments.range and arguments.staged:
        wrong = "A range and --staged cannot be given together."
    elif arguments.apply is not None and (arguments.range or arguments.staged):
        wrong = "--apply reviews nothing: it takes no range and no --staged."
    elif arguments.mode not in (None, "plan"):
        wrong = "A review only reads: its mode is plan."
    if wrong:
        raise ConfigError("review-use", wrong, fix="`treadle review --help` shows what goes together.")


def _whole_id(prefix: str) -> str:
    """Give the id of the session that a prefix names; raises `SessionError`."""
    if not prefix:
        return ""
    from treadle.door.opening import session_log

    with session_log(prefix) as (row, _):
        return row.id


def _opening(arguments: argparse.Namespace, *, mode: str | None, resume: str = "") -> "Opening":
    from treadle.cli.command_line import opening_of, session_trust_of

    arguments.mode, arguments.resume = mode, resume
    return opening_of(arguments, session_trust_of(arguments), user_present=False)


def _nothing(left_out: tuple[str, ...], *, as_json: bool) -> int:
    """Say that there is nothing to review; raises `TreadleError` where something changed and none of it is shown."""
    if left_out:
        why = " ".join(f"{one}." for one in left_out[:5])
        raise TreadleError("review-left-out", "Nothing of what changed can be reviewed.", why=why)
    if as_json:
        sys.stdout.write('{"findings":[],"cost":0.0}\n')
    else:
        _say(["There is nothing to review."])
    return 0


def _show(report: "ReviewReport", arguments: argparse.Namespace) -> int:
    """Write what was found, unless that is not known; returns the exit code."""
    from treadle.door.program import Exit, describe_model_error, exit_code, harmless, write_wrapped
    from treadle.door.review import finding_lines, record_of_review
    from treadle.headless.progress import summary_lines
    from treadle.protocol.codec import encode

    _say(f"# {note}" for note in report.notes)
    known = report.ended is None or bool(report.findings)
    if arguments.json and known:
        sys.stdout.write(f"{encode(record_of_review(report)).decode()}\n")
    elif known:
        lines = [line for one in report.findings for line in finding_lines(one)] or ["Nothing was found."]
        write_wrapped(sys.stdout, harmless("\n".join(lines)))
    sys.stdout.flush()
    cost = "at an unknown price" if report.cost is None else f"${report.cost:.4f}"
    keeps = "the findings are kept in session" if report.findings else "session"
    _say([f"# {cost}; {keeps} {report.session}"])
    if report.ended is not None:
        _say(summary_lines(report.ended))
        if report.ended.error is not None:
            _say([describe_model_error(report.ended.error, report.model)])
        return exit_code(report.ended) or Exit.FAILED
    if not arguments.json and any(one.finding.change for one in report.findings):
        _offer(report, arguments)
    return Exit.FAILED if report.has_errors else Exit.DONE


def _offer(report: "ReviewReport", arguments: argparse.Namespace) -> None:
    """Let the person apply changes, where there is one at a terminal; say how else."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        _say([f"# To apply a change: treadle review --apply N --session {report.session}"])
        return
    while True:
        sys.stderr.write("Apply the change of which finding? Its number, or Enter for none: ")
        sys.stderr.flush()
        said = sys.stdin.readline().strip()
        if not said:
            return
        if not said.isdecimal():
            _say([f"{said!r} is not a number."])
            continue
        try:
            _apply(arguments, report.session, int(said))
        except TreadleError as error:
            _say([" ".join(filter(None, (error.what, error.why)))])


def _apply(arguments: argparse.Namespace, session: str, number: int) -> int:
    """Apply the change of a finding in its session; returns the exit code. Raises `TreadleError`."""
    from treadle.door.program import harmless
    from treadle.door.review import apply_finding, numbered_finding

    finding = numbered_finding(session, number)
    if finding.change is None:
        raise TreadleError("review-apply", f"Finding {number} has no change to apply.", fix="Make it yourself.")
    applied = asyncio.run(apply_finding(finding, partial(_opening, arguments, mode=None, resume=session)))
    if applied.problem:
        raise TreadleError("review-apply", f"The change of finding {number} was not applied.", why=applied.problem)
    lines = [f"{one.path} (+{one.added} -{one.removed})" for one in applied.changes]
    undo = f"To undo it: treadle -p /undo --resume {session}"
    sys.stdout.write(harmless("\n".join([f"Applied finding {number}.", *lines, undo])) + "\n")
    return 0


class _Narrator:
    """Says on standard error what the sessions of a review do; what the model says there is for the program."""

    def __init__(self) -> None:
        from treadle.present.item_lines import ProgressLines

        self._lines = ProgressLines("headless")

    def hear(self, stamped: "Stamped") -> None:
        """Take what happened. The review goes on where nobody reads along any more."""
        lines = [line.signed for line in self._lines.take(stamped) if line.sign]
        with suppress(OSError):
            _say(lines)


def _say(lines: Iterable[str]) -> None:
    from treadle.door.program import harmless, write_wrapped

    for line in lines:
        write_wrapped(sys.stderr, harmless(line))
    sys.stderr.flush()

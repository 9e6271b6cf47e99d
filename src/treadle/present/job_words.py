"""What became of commands: how one ended, what went on in the background, and whether all of its output is here."""

from treadle.present.words import plain, verb_of, without_remarks
from treadle.protocol.notifications import CallChanged
from treadle.protocol.patterns import regex
from treadle.protocol.tools import CallResult, Outcome

_STATUS = regex(r"Exit status (\d+)(?: \([^)]*\))?\.$")
_GOES_ON = regex(r"Command (\d+) continues in the background\.")


def job_begun(changed: CallChanged) -> int:
    """Give the number of the command that a call left in the background; 0 for one that left none."""
    result = changed.result
    if result is None or verb_of(changed.call.name) != "Run":
        return 0  # what looks at such a command tells of it in the same words
    found = _GOES_ON.match(plain(without_remarks(result.content)))
    return int(found[1]) if found else 0


def exit_of(result: CallResult) -> str:
    """Say with which status a command ended that went well, too: `exit 0`; empty for what is no command that ended."""
    status = _STATUS.match(plain(without_remarks(result.content)).partition("\n")[0])
    return f"exit {status[1]}" if status else ""


def job_ended(state: str) -> tuple[str, Outcome]:
    """Say how a command in the background ended; `state` is the sentence of its record."""
    if "SIGTERM" in state:
        return "stopped", Outcome.INTERRUPTED  # as who stops it does, in a sandbox and without one
    if status := _STATUS.match(state):
        return f"exit {status[1]}", Outcome.OK if status[1] == "0" else Outcome.FAILED
    said = state.partition(":")[0].rstrip(".")
    return f"{said[:1].lower()}{said[1:]}", Outcome.INTERRUPTED


def is_shortened(result: CallResult) -> bool:
    """Whether a result has less than was printed; what may be long is kept in a file, also where all of it is here."""
    return bool(result.full_output) and result.full_output in plain(result.content)

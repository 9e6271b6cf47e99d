"""What the model still knows after older messages left the prompt: facts of the session, in its own words nowhere."""

from collections.abc import Iterator, Sequence

from treadle.context.shorten import shorten
from treadle.protocol.base import Record
from treadle.protocol.patterns import regex
from treadle.protocol.tools import FileChange

_KEPT_RUNS = 4
_MOST_OUTPUT = 600
_MOST_LINE = 300
_MOST_REQUEST = 500
_MOST_REQUESTS = 20
_MOST_FILES = 60

_CHECK = regex(
    r"\b(tests?|pytest|unittest|tox|nox|jest|vitest|mocha|rspec|phpunit|ctest|check|lint|ruff|mypy|pyright|eslint|tsc"
    r"|build|compile|cargo|gradle|mvn|make)\b"
)
"""Words by which a command is taken for a test, a check or a build."""


class Ran(Record, frozen=True, kw_only=True):
    """A command that was run: its line, what the model read of it, and the file with its whole output, if any."""

    command: str
    said: str
    full_output: str = ""

    @property
    def is_check(self) -> bool:
        """Whether it looks like a test, a check or a build."""
        return _CHECK.search(self.command) is not None


class Known(Record, frozen=True, kw_only=True):
    """The facts: later requests of the user, changed files, the last commands, the checklist, and who is there."""

    requests: Sequence[str] = ()
    changes: Sequence[FileChange] = ()
    runs: Sequence[Ran] = ()
    checklist: str = ""
    user_present: bool = False


def remember_run(runs: Sequence[Ran], new: Ran) -> tuple[Ran, ...]:
    """Keep the newest run of each command, the last few of them; the newest check stays whatever came after it."""
    new = Ran(
        command=new.command,
        said=shorten(new.said, _MOST_OUTPUT, "only the beginning and the end are kept"),
        full_output=new.full_output,
    )
    every = [*(run for run in runs if run.command != new.command), new]
    kept = every[-_KEPT_RUNS:]
    check = next((run for run in reversed(every) if run.is_check), None)
    return tuple(kept) if check is None or check in kept else (check, *kept)


def left_out_summary(known: Known) -> str:
    """Say what is known of the messages that left."""
    return "\n".join(["[Earlier messages were left out to make room. This is known about them:", *_parts(known)]) + "]"


def _parts(known: Known) -> Iterator[str]:
    if known.requests:
        yield "After the task the user also said, in this order:"
        for request in known.requests[-_MOST_REQUESTS:]:
            yield f"- {shorten(request, _MOST_REQUEST, 'it was longer')}"
    if known.changes:
        yield "Files changed so far (read them again before you edit them):"
        for change in known.changes[-_MOST_FILES:]:
            gone = " deleted" if not change.after else ""
            yield f"- {change.path} (+{change.added} -{change.removed}){gone}"
        if len(known.changes) > _MOST_FILES:
            yield f"- and {len(known.changes) - _MOST_FILES} more; git status shows them"
    if known.runs:
        yield "The last commands, the newest at the end:"
        for run in known.runs:
            where = f"\n(whole output: {run.full_output})" if run.full_output else ""
            yield f"$ {shorten(run.command, _MOST_LINE, 'it was longer')}\n{run.said}{where}"
    if known.checklist:
        yield f"The checklist:\n{known.checklist}"
    yield "Earlier results are no longer here. Read the files again if you need them."
    if known.user_present:
        yield "Ask the user if something that only they know is missing."

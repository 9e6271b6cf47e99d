"""What the model still knows after older messages left the prompt: facts of the session that the log holds."""

from collections.abc import Iterable, Iterator, Sequence

from treadle.context.provenance import Entry, sources_of
from treadle.context.shorten import fair_shares, shorten
from treadle.protocol.base import Record
from treadle.protocol.messages import ContentBlock, Role, Text, ToolResult, text_of
from treadle.protocol.patterns import regex
from treadle.protocol.tools import FileChange

_KEPT_RUNS = 4
_KEPT_CHECKS = 5
_FIRST_CHECKS = 3
_MOST_OUTPUT = 600
_MOST_LINE = 300
_MOST_REQUEST = 500
_MOST_REQUESTS = 20
_MOST_FILES = 60
_MOST_DECISIONS = 40
_MOST_READS = 80
_MOST_SAID = 30
_MOST_REMARK = 200

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


class Facts(Record, frozen=True, kw_only=True):
    """What messages that left said: requests and decisions of the user, files that were read, remarks of the model."""

    requests: tuple[str, ...] = ()
    decisions: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


class Known(Record, frozen=True, kw_only=True):
    """What is known at all: those facts, changed files, the last commands, the checklist, pins, and who is there."""

    facts: Facts = Facts()
    changes: Sequence[FileChange] = ()
    runs: Sequence[Ran] = ()
    checklist: str = ""
    pins: Sequence[str] = ()
    user_present: bool = False


def remember_run(runs: Sequence[Ran], new: Ran) -> tuple[Ran, ...]:
    """Keep the newest run of each command: the last few of them, and the first and the last checks."""
    new = Ran(
        command=new.command,
        said=shorten(new.said, _MOST_OUTPUT, "only the beginning and the end are kept"),
        full_output=new.full_output,
    )
    every = [*(run for run in runs if run.command != new.command), new]
    checks = [run for run in every if run.is_check]
    kept = {id(run) for run in (*every[-_KEPT_RUNS:], *checks[:_FIRST_CHECKS], *checks[-_KEPT_CHECKS:])}
    return tuple(run for run in every if id(run) in kept)


def known_of(entries: Iterable[Entry], before: Facts) -> Facts:
    """Add what these messages say to what is known of earlier ones."""
    found = [fact for entry in entries for fact in _facts(entry)]
    return Facts(
        requests=_ends(before.requests, (text for kind, text in found if kind == "request"), _MOST_REQUESTS),
        decisions=_ends(before.decisions, (text for kind, text in found if kind == "decision"), _MOST_DECISIONS),
        reads=_ends(before.reads, (text for kind, text in found if kind == "read"), _MOST_READS),
        remarks=_ends(before.remarks, (text for kind, text in found if kind == "remark"), _MOST_SAID),
    )


def _facts(entry: Entry) -> Iterator[tuple[str, str]]:
    for request in entry.asked:
        yield "request", shorten(request, _MOST_REQUEST, "it was longer")
    for block, source in zip(entry.message.content, sources_of(entry), strict=True):
        said = _text(block)
        match source.kind:
            case "answer":
                yield "decision", _short(f"{source.origin} The user answered: {said}")
            case "rejection":
                yield "decision", _short(f"{source.origin}: {said}")
            case "read":
                yield "read", source.origin
            case _ if entry.message.role is Role.ASSISTANT and isinstance(block, Text) and said.strip():
                yield "remark", _short(said)
            case _:
                pass


def _text(block: ContentBlock) -> str:
    match block:
        case Text(text=text):
            return text
        case ToolResult(content=content):
            return text_of(content)
        case _:
            return ""


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MOST_REMARK else f"{line[: _MOST_REMARK - 1]}…"


def _ends(before: Iterable[str], new: Iterable[str], most: int) -> tuple[str, ...]:
    """Keep each once: where there are too many, the first and the last ones."""
    every = tuple(dict.fromkeys((*before, *new)))
    return every if len(every) <= most else (*every[: most // 2], *every[most // 2 - most :])


def left_out_summary(known: Known, written: str = "", most: int | None = None) -> str:
    """Say what is known of the messages that left: what the model wrote about them, and what the log says.

    `most` bounds its characters; what the user pinned is in it whole, whatever it takes.
    """
    pins = "\n".join(_list("The user wants you to keep this in mind, word for word:", known.pins))
    parts = ["\n".join(lines) for lines in _sections(known, written) if lines]
    sizes = {str(at): len(part) for at, part in enumerate(parts)}
    shares = sizes if most is None else fair_shares(sizes, max(0, most - len(pins)))
    kept = [shorten(part, shares[str(at)], "there was no room for more") for at, part in enumerate(parts)]
    said = "\n".join(filter(None, (pins, *kept, *_end(known))))
    return f"[Earlier messages were left out to make room. This is known about them:\n{said}]"


def _sections(known: Known, written: str) -> Iterator[Sequence[str]]:
    facts = known.facts
    yield (f"Your own summary:\n{written}",) if written else ()
    yield _list("After the task the user also said, in this order:", facts.requests)
    yield _list("What the user decided:", facts.decisions)
    yield _list("Files changed so far (read them again before you edit them):", _changes(known.changes))
    yield (f"The checklist:\n{known.checklist}",) if known.checklist else ()
    yield tuple(_runs(known.runs))
    if not written:
        yield _list("Files that you read:", [", ".join(facts.reads)] if facts.reads else ())
        yield _list("What you said at the time:", facts.remarks)


def _end(known: Known) -> Iterator[str]:
    yield "Earlier results are no longer here. Read the files again if you need them."
    if known.user_present:
        yield "Ask the user if something that only they know is missing."


def _changes(changes: Sequence[FileChange]) -> Sequence[str]:
    lines = [
        f"{change.path} (+{change.added} -{change.removed}){'' if change.after else ' deleted'}" for change in changes
    ]
    shown = _ends((), lines, _MOST_FILES)
    more = len(lines) - len(shown)
    return [*shown, f"and {more} more; git status shows them"] if more else shown


def _runs(runs: Sequence[Ran]) -> Iterator[str]:
    if runs:
        yield "The last commands, the newest at the end:"
    for run in runs:
        where = f"\n(whole output: {run.full_output})" if run.full_output else ""
        yield f"$ {shorten(run.command, _MOST_LINE, 'it was longer')}\n{run.said}{where}"


def _list(title: str, lines: Sequence[str]) -> tuple[str, ...]:
    return (title, *(f"- {line}" for line in lines)) if lines else ()

"""A review: a session of its own that only reads, asked once for findings, and once more whether they are right."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from enum import StrEnum
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from treadle.app.code_review.changes_to_review import ChangesToReview
from treadle.app.code_review.diff_files import fit_into, shown_diff
from treadle.app.code_review.finding_book import KeptFinding, keep_findings, kept_findings, new_findings
from treadle.app.code_review.finding_forms import (
    CheckedAnswer,
    FindingSeverity,
    FoundAnswer,
    ReviewFinding,
    UnreadableAnswerError,
    hold_against,
    read_review_answer,
)
from treadle.app.compose import Opening, open_session
from treadle.app.history.keeping_sessions import rename_session
from treadle.app.session.shared.turn_asking import SessionClient
from treadle.present.words import counted
from treadle.protocol.attach import Stamped
from treadle.protocol.base import Record
from treadle.protocol.codec import encode
from treadle.protocol.errors import TreadleError
from treadle.protocol.events import Source
from treadle.protocol.messages import Enclosure, EnclosureKind, Text
from treadle.protocol.notifications import TurnOutcome, TurnStop

_T = TypeVar("_T", bound=Struct)
_OF_A_TOKEN = 1.5
"""Characters of a diff for each token of the window: it takes less than half of it."""

_REVIEW = Source(kind="headless", id="review")

_FORM = """\
{"findings": [{"file": "the path as in the diff", "line": 12, "severity": "error", "confidence": 0.9, "title": "one \
short sentence", "text": "what goes wrong, for which input, and why", "change": null}]}"""

_TASK = f"""\
Review the enclosed diff. Look for what is wrong in what it changes: bugs, broken callers, lost data, races, holes in \
safety, missing checks of errors, tests that cannot fail. Read the files around the changes before you judge: the diff \
alone does not show who calls what. Do not report style, nor what was wrong before and is not touched.

Each line of the diff has its number in the new version in front of it. A finding names a file and such a number of a \
line that the diff shows. `severity` is "error" for what must not be merged, "warning" for what should be fixed, \
"note" for the rest. `confidence` is how sure you are, from 0 to 1. `change` is null, or an edit of that file that \
fixes it: SEARCH/REPLACE blocks or a unified diff, of the text of the file as it is now.

Change nothing and ask nothing. End with one JSON object in exactly this form and nothing else:
{_FORM}
Without findings it is {{"findings": []}}."""

_CHECK = """\
Check each of the enclosed findings against the files, as somebody who wants to prove it wrong: read the code at the \
line and around it, and its callers. Confirm a finding only if you can say how it fails. Do not report new ones.

End with one JSON object in exactly this form and nothing else, with an entry for each finding:
{"verdicts": [{"number": 1, "confirmed": true, "why": "one short sentence"}]}"""

_AGAIN = "Your answer could not be read. {why} Give it again as one JSON object in the form that the task shows."


class ReviewEffort(StrEnum):
    """How much is checked: not at all, by a further turn, or by a session that did not find it."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class ReviewReport(Struct, frozen=True, kw_only=True):
    """What came of a review. `session` keeps its findings; `notes` say what is not among them, and why.

    `cost` is in US dollars, None where a price is not known. `ended` is how a turn ended that did not come to its end.
    """

    session: str
    findings: tuple[KeptFinding, ...] = ()
    notes: tuple[str, ...] = ()
    cost: float | None = 0.0
    model: str = ""
    ended: TurnOutcome | None = None

    @property
    def has_errors(self) -> bool:
        """Whether a finding is an error."""
        return any(one.finding.severity is FindingSeverity.ERROR for one in self.findings)


class ReviewRecord(Record, frozen=True, kw_only=True, omit_defaults=False):
    """What `--json` prints of a review."""

    findings: tuple[ReviewFinding, ...]
    cost: float | None


def record_of_review(report: ReviewReport) -> ReviewRecord:
    """Give a report as `--json` prints it."""
    return ReviewRecord(findings=tuple(one.finding for one in report.findings), cost=report.cost)


class _TurnEndedError(Exception):
    """A turn did not come to its end."""

    def __init__(self, outcome: TurnOutcome) -> None:
        super().__init__(outcome.stop)
        self.outcome = outcome


class _Reviewer(Struct):
    """Asks the sessions of one review, and adds up what they cost."""

    opening: Callable[[], Opening]
    hears: Callable[[Stamped], None]
    started: Callable[[str, str], None]
    about: str
    cost: float | None = 0.0
    session: str = ""
    model: str = ""

    @asynccontextmanager
    async def client(self) -> AsyncIterator[SessionClient]:
        """Open a session, and close it; it is called by what it reviews."""
        live = await open_session(self.opening())
        try:
            async with SessionClient(live, _REVIEW, self.hears) as client:
                self.session = self.session or live.id
                self.model = live.status.model
                self.started(live.id, self.model)
                yield client
        finally:
            with suppress(TreadleError):
                rename_session(live.id, f"Review of {self.about}")

    async def ask(self, client: SessionClient, task: str, form: type[_T], *enclosed: Enclosure) -> _T:
        """Get an answer in a form; one that cannot be read is asked for once more. Raises `TreadleError`."""
        text = await self._answer(client, task, enclosed)
        try:
            return read_review_answer(text, form)
        except UnreadableAnswerError as error:
            text = await self._answer(client, _AGAIN.format(why=error), ())
        try:
            return read_review_answer(text, form)
        except UnreadableAnswerError as error:
            raise TreadleError(
                "review-answer",
                "The model did not answer in the form of a review.",
                why=f"{error} It was asked twice.",
                fix="Try again, or take another model: treadle review --model PROVIDER/MODEL",
            ) from error

    async def _answer(self, client: SessionClient, task: str, enclosed: tuple[Enclosure, ...]) -> str:
        run = await client.ask((Text(text=task),), enclosed=enclosed)
        outcome = await run.wait()
        known = None if self.cost is None or outcome.cost is None else self.cost + outcome.cost
        self.cost = known
        if outcome.stop is not TurnStop.END_TURN:
            raise _TurnEndedError(outcome)
        return outcome.text


@contextmanager
def _keeping(notes: list[str]) -> Iterator[None]:
    """Keep what the first pass found where the second fails, and note why."""
    try:
        yield
    except TreadleError as error:
        notes.append(f"The findings were not checked: {error.what} {error.why}".strip())


def _silent(_: object, *__: object) -> None:
    """Tell nobody."""


async def run_review(
    changes: ChangesToReview,
    opening: Callable[[], Opening],
    *,
    effort: ReviewEffort = ReviewEffort.MEDIUM,
    book: str = "",
    hears: Callable[[Stamped], None] = _silent,
    started: Callable[[str, str], None] = _silent,
) -> ReviewReport:
    """Review changes; `opening` opens a session in plan mode with nobody to ask.

    What the session `book` showed before is not reported again, and what is reported is kept there; by default it is
    the session of the review. `hears` gets what happens, `started` each session's id and model. Raises `TreadleError`.
    """
    reviewer = _Reviewer(opening=opening, hears=hears, started=started, about=changes.about)
    folder = opening().workspace
    known = kept_findings(book) if book else ()
    ended: TurnOutcome | None = None
    notes: list[str] = []
    findings: tuple[ReviewFinding, ...] = ()
    async with reviewer.client() as client:
        try:
            changes, cut = _in_window(changes, client.session.status.window)
            notes += cut
            said = await reviewer.ask(client, _TASK, FoundAnswer, *_enclosed(changes, known))
            held = await asyncio.to_thread(hold_against, said.findings, changes.files, folder)
            findings, more = _new_ones(held.findings, changes, known)
            notes += (*held.notes, *more)
            findings = tuple(sorted(findings, key=_worst_first))
            if findings and effort is ReviewEffort.MEDIUM:
                with _keeping(notes):
                    findings, more = await _checked(reviewer, client, findings)
                    notes += more
        except _TurnEndedError as error:
            ended = error.outcome
    if findings and effort is ReviewEffort.HIGH and ended is None:
        try:
            with _keeping(notes):
                async with reviewer.client() as other:
                    findings, more = await _checked(reviewer, other, findings, _diff_of(changes))
                    notes += more
        except _TurnEndedError as error:
            ended = error.outcome
    if findings and ended is not None:
        notes.append("The findings were not checked: the second pass did not finish.")
    codes = _codes(changes)
    where = book or reviewer.session
    kept = keep_findings(where, [(one, codes.get((one.file, one.line), "")) for one in findings])
    return ReviewReport(
        session=where, findings=kept, notes=tuple(notes), cost=reviewer.cost, model=reviewer.model, ended=ended
    )


def _worst_first(one: ReviewFinding) -> tuple[int, float, str, int]:
    return [*FindingSeverity].index(one.severity), -one.confidence, one.file, one.line


def _in_window(changes: ChangesToReview, window: int | None) -> tuple[ChangesToReview, list[str]]:
    """Leave out what is too large for the window of a model (tokens), beside its work. Raises `TreadleError`."""
    if window is None:
        return changes, []
    files, cut = fit_into(changes.files, int(window * _OF_A_TOKEN))
    left_out = tuple(one for one in cut if one not in changes.left_out)
    if not files:
        why = f"The window of the model has {window:,} tokens."
        raise TreadleError(
            "review-left-out", "Nothing of what changed fits the model.", why=why, fix="Take another one."
        )
    smaller = replace(changes, files=files, left_out=(*changes.left_out, *left_out))
    return smaller, [f"Left out: {one}." for one in left_out]


def _codes(changes: ChangesToReview) -> dict[tuple[str, int], str]:
    return {(file.path, number): line for file in changes.files for number, line in file.new_side.items()}


def _new_ones(
    found: Sequence[ReviewFinding], changes: ChangesToReview, known: Sequence[KeptFinding]
) -> tuple[tuple[ReviewFinding, ...], list[str]]:
    """Leave out what was shown before, and what is said twice."""
    codes = _codes(changes)
    held = new_findings([(one, codes.get((one.file, one.line), "")) for one in found], known)
    gone = ((held.before, "shown before"), (held.twice, "said twice"))
    return held.new, [f"{counted(number, 'finding')} left out: {why}." for number, why in gone if number]


async def _checked(
    reviewer: _Reviewer, client: SessionClient, findings: tuple[ReviewFinding, ...], *enclosed: Enclosure
) -> tuple[tuple[ReviewFinding, ...], list[str]]:
    """Let each finding be checked; one without a verdict stays, and that is said."""
    rows = [f"{number}: {encode(one).decode()}" for number, one in enumerate(findings, start=1)]
    listed = _enclosure("findings to check", "\n".join(rows))
    said = await reviewer.ask(client, _CHECK, CheckedAnswer, *enclosed, listed)
    verdicts = {one.number: one for one in said.verdicts}
    kept: list[ReviewFinding] = []
    notes: list[str] = []
    for number, one in enumerate(findings, start=1):
        verdict = verdicts.get(number)
        if verdict is None:
            notes.append(f"The second pass says nothing of {one.file}:{one.line}: it is shown unchecked.")
        if verdict is None or verdict.confirmed:
            kept.append(one)
        else:
            why = " ".join(verdict.why.split())
            notes.append(f"{one.file}:{one.line} left out: the second pass did not confirm it. {why}".strip())
    return tuple(kept), notes


def _enclosed(changes: ChangesToReview, known: Sequence[KeptFinding]) -> list[Enclosure]:
    found = [_diff_of(changes)]
    if known:
        rows = [f"{one.finding.file}:{one.finding.line} {one.finding.title}" for one in known]
        found.append(_enclosure("findings that are known: do not report these again", "\n".join(rows)))
    return found


def _diff_of(changes: ChangesToReview) -> Enclosure:
    left_out = "".join(f"\n[Left out: {one}]" for one in changes.left_out)
    return _enclosure(changes.about, f"{shown_diff(changes.files)}{left_out}")


def _enclosure(about: str, text: str) -> Enclosure:
    content = (Text(text=f"[{about}]\n{text}"),)
    return Enclosure(kind=EnclosureKind.CHANGES, origin=about, content=content)


def finding_lines(one: KeptFinding) -> list[str]:
    """Put a finding into lines."""
    finding = one.finding
    head = f"{one.number}. {finding.file}:{finding.line} {finding.severity} ({finding.confidence:.0%}): {finding.title}"
    body = [f"   {line}" for line in finding.text.strip().split("\n") if finding.text.strip()]
    change = [] if finding.change is None else ["   Suggested change:", *_indented(finding.change)]
    return [head, *body, *change]


def _indented(change: str) -> list[str]:
    return [f"     {line}" for line in change.strip("\n").split("\n")]

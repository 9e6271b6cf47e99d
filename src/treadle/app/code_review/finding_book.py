"""The findings that reviews of a session showed: numbered, kept beside its log, and not shown again."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import Struct

from treadle.app.checkpoints.opening_checkpoints import findings_file
from treadle.app.code_review.finding_forms import ReviewFinding
from treadle.app.compose import list_sessions
from treadle.protocol.errors import SessionError, StoreError
from treadle.workspace.files.private_file import write_private

_ALIKE = 0.5
"""The part of the words of two titles that is the same where they are of one finding at the same line."""


class KeptFinding(Struct, frozen=True, kw_only=True):
    """A finding that was shown: its number in the session, and the text of its line then."""

    number: int
    finding: ReviewFinding
    code: str = ""


def kept_findings(session_id: str) -> tuple[KeptFinding, ...]:
    """Read the findings that a session showed. Raises `StoreError` where they cannot be read."""
    file = findings_file(session_id)
    try:
        return msgspec.json.decode(file.read_bytes(), type=tuple[KeptFinding, ...])
    except FileNotFoundError:
        return ()
    except (OSError, msgspec.MsgspecError) as error:
        raise StoreError(
            "review-unreadable",
            "The findings of this session cannot be read.",
            why=f"{file}: {getattr(error, 'strerror', None) or error}.",
            fix="Make the file readable, or move it away: then the next review numbers its findings from 1.",
        ) from error


def keep_findings(session_id: str, found: Sequence[tuple[ReviewFinding, str]]) -> tuple[KeptFinding, ...]:
    """Keep findings with the texts of their lines, as shown; gives them with their numbers. Raises `StoreError`."""
    known = kept_findings(session_id)
    last = known[-1].number if known else 0
    new = tuple(
        KeptFinding(number=number, finding=one, code=code) for number, (one, code) in enumerate(found, start=last + 1)
    )
    file = findings_file(session_id)
    if new:
        try:
            write_private(file, msgspec.json.encode((*known, *new)))
        except OSError as error:
            raise StoreError(
                "review-unwritable",
                "The findings cannot be kept.",
                why=f"{file}: {error.strerror}.",
                fix="Check the free space and the permissions of the folder.",
            ) from error
    return new


class SortedFindings(NamedTuple):
    """The findings of an answer that are new, and how many were shown before, or are said twice in it."""

    new: tuple[ReviewFinding, ...]
    before: int
    twice: int


def new_findings(found: Sequence[tuple[ReviewFinding, str]], known: Sequence[KeptFinding]) -> SortedFindings:
    """Leave out what was shown before, or is said twice; each finding comes with the text of its line.

    Said twice is what has nearly the same title at the same line. Shown before is what has nearly the same title at the
    same text of a line, then what has the same title; each that was shown is found again once.
    """
    once: list[tuple[ReviewFinding, str]] = []
    for one, code in found:
        if not any(_is_alike(one, other) and one.line == other.line for other, _ in once):
            once.append((one, code))
    left, new = list(known), once
    for needs_line in (True, False):
        pending, new = new, []
        for one, code in pending:
            shown = next((other for other in left if _is_shown(one, code, other, needs_line=needs_line)), None)
            if shown is None:
                new.append((one, code))
            else:
                left.remove(shown)
    return SortedFindings(tuple(one for one, _ in new), len(once) - len(new), len(found) - len(once))


def _is_shown(one: ReviewFinding, code: str, shown: KeptFinding, *, needs_line: bool) -> bool:
    if needs_line:
        return shown.code.strip() == code.strip() and _is_alike(one, shown.finding)
    return _is_alike(one, shown.finding, most=1.0)


def _is_alike(one: ReviewFinding, other: ReviewFinding, most: float = _ALIKE) -> bool:
    """Whether two findings are of one file, and so large a part of the words of their titles is the same."""
    words, others = _words(one.title), _words(other.title)
    return one.file == other.file and len(words & others) / max(1, len(words | others)) >= most


def _words(title: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", title.lower()))


def last_reviewed(folder: Path) -> str:
    """Find the session of a folder whose findings were shown last. Raises `SessionError`."""
    shown = {row.id: findings_file(row.id) for row in list_sessions(folder)}
    times = {name: file.stat().st_mtime_ns for name, file in shown.items() if file.is_file()}
    if times:
        return max(times, key=times.__getitem__)
    raise _no_finding("No review of this folder has findings.", "Start one: treadle review")


def numbered_finding(session_id: str, number: int) -> ReviewFinding:
    """Find what was shown under a number. Raises `SessionError`."""
    known = kept_findings(session_id)
    for one in known:
        if one.number == number:
            return one.finding
    numbers = ", ".join(str(one.number) for one in known)
    fix = f"The numbers of this session: {numbers}." if numbers else "This session has none. A review finds some."
    raise _no_finding(f"There is no finding {number}.", fix)


def _no_finding(what: str, fix: str) -> SessionError:
    return SessionError("review-finding", what, fix=fix)

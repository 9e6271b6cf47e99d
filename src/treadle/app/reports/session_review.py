"""The review of a session: what there is to see, what a person decided of it, and what they say to the model."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType

import msgspec
from msgspec import Struct

from treadle.app.checkpoints.checkpoint_files import FileCheckpoints
from treadle.app.checkpoints.opening_checkpoints import opened_checkpoints, review_file
from treadle.app.checkpoints.points import Points
from treadle.app.checkpoints.reviewing import ReviewedHunk, SessionReview
from treadle.present.words import counted
from treadle.protocol.checkpoints import CheckpointTaken, Moment
from treadle.protocol.errors import ConfigError, StoreError
from treadle.protocol.events import ReplyFinished
from treadle.protocol.patterns import regex
from treadle.protocol.sealed import PromptsDelivered
from treadle.store.appending import tag_of
from treadle.store.damage import event_data
from treadle.store.sqlite import SessionRow, Store
from treadle.workspace.files.private_file import write_private

_TREE = regex(r"(?:[0-9a-f]{64})?")
_MOST_MARKS = 20_000
_MOST_QUOTED = 60
"""Lines of a change that a comment quotes."""

_LONGEST = 500


class ReviewStep(Struct, frozen=True, kw_only=True):
    """A step that changed files: the checkpoints around it, and what it changed."""

    old: int
    new: int
    step: int
    at: int
    files: int
    added: int
    removed: int


class ReviewComment(Struct, frozen=True, kw_only=True):
    """What a person says of a change, or of some lines of it: `first` to `last` of one side, from 0, both included."""

    path: str
    index: int
    text: str
    side: str = ""
    first: int = 0
    last: int = 0


def review_steps(store: Store, session_id: str) -> list[ReviewStep]:
    """List what can be reviewed by itself, oldest first."""
    taken = Points(store, session_id).checkpoints
    return [
        ReviewStep(
            old=before.data.n,
            new=one.data.n,
            step=one.data.step,
            at=one.at,
            files=one.data.files,
            added=one.data.added,
            removed=one.data.removed,
        )
        for before, one in pairwise(taken)
        if one.data.moment in (Moment.AFTER, Moment.FOUND) and one.data.files
    ]


def turn_checkpoint(store: Store, session_id: str) -> int:
    """Give the checkpoint since which the last turn worked; 0 for the first one, or where there is none."""
    points = Points(store, session_id)
    began = max((turn.began for turn in points.turns()), default=0)
    return max((one.data.n for one in points.checkpoints if one.seq < began), default=0)


def open_review(
    store: Store, row: SessionRow, *, old: int = 0, new: int | None = None, trees: Sequence[str] = ()
) -> SessionReview | None:
    """Compare two checkpoints; by default the first one with the files as they are now, or as `trees` saw them.

    None for a session that has no checkpoints. Raises `TreadleError`.
    """
    points = Points(store, row.id)
    taken = [one.data for one in points.checkpoints]
    if not taken:
        return None
    first = points.checkpoint(old) if old else taken[0]
    kept = opened_checkpoints(store, row)
    last = points.checkpoint(new).n if new is not None else taken[-1].n
    after = points.checkpoint(new).trees if new is not None else _seen(kept, trees)
    between = [one for one in taken if first.n <= one.n <= last]
    return SessionReview(kept, between, _first_trees(first, after), after)


def _first_trees(first: CheckpointTaken, after: Sequence[str]) -> tuple[str, ...]:
    if len(first.trees) != len(after):
        raise ConfigError(
            "review-gone", "The session had other folders then.", fix="Compare checkpoints that have the same folders."
        )
    return first.trees


def _seen(kept: FileCheckpoints, trees: Sequence[str]) -> tuple[str, ...]:
    if not trees:
        return kept.look()
    if len(trees) != len(kept.roots) or not all(_TREE.fullmatch(tree) for tree in trees):
        raise ConfigError("review-gone", "The files are not those that were shown.", fix="Load the changes again.")
    return tuple(trees)


def answered_prompts(store: Store, session_id: str) -> Mapping[str, int]:
    """Give the step that answered each message of a session, by the message's id."""
    waiting: list[str] = []
    answered: dict[str, int] = {}
    for _, _, raw, version in store.of_types(session_id, (tag_of(PromptsDelivered), tag_of(ReplyFinished))):
        data = event_data(raw, version)
        if isinstance(data, PromptsDelivered):
            waiting += data.prompt_ids
        elif isinstance(data, ReplyFinished):
            answered |= dict.fromkeys(waiting, data.step)
            waiting.clear()
    return answered


def review_marks(session_id: str) -> Mapping[str, str]:
    """Give what a person decided of changes, by their keys: `accepted`, `rejected` or `amended`."""
    with suppress(OSError, msgspec.MsgspecError):
        return MappingProxyType(msgspec.json.decode(review_file(session_id).read_bytes(), type=dict[str, str]))
    return MappingProxyType({})


def mark_reviewed(session_id: str, marks: Mapping[str, str]) -> None:
    """Note what was decided of changes; an empty word removes the note. Raises `StoreError`."""
    known = {**review_marks(session_id), **marks}
    kept = [(key, mark) for key, mark in known.items() if mark][-_MOST_MARKS:]
    file: Path = review_file(session_id)
    try:
        write_private(file, msgspec.json.encode(dict(kept)))
    except OSError as error:
        raise StoreError(
            "review-unwritable",
            "What you decided cannot be kept.",
            why=f"{file}: {error.strerror}.",
            fix="Check the free space and the permissions of the folder.",
        ) from error


def comments_message(review: SessionReview, comments: Sequence[ReviewComment]) -> str:
    """Write one message to the model of all comments, each with the file, the lines and the change.

    Raises `ConfigError`.
    """
    hunks: dict[str, Mapping[int, ReviewedHunk]] = {}
    parts = [f"Comments on your changes ({counted(len(comments), 'comment')}):"]
    for comment in sorted(comments, key=lambda one: (one.path, one.index, one.first)):
        if comment.path not in hunks:
            hunks[comment.path] = {one.index: one for one in review.hunks(review.file(comment.path))}
        hunk = hunks[comment.path].get(comment.index)
        where = f"{comment.path}" if hunk is None else f"{comment.path}, {_lines_of(hunk, comment)}"
        quoted = [] if hunk is None else _quoted(hunk, comment)
        fenced = ["", "```diff", *(line[:_LONGEST] for line in quoted), "```"]
        parts.append("\n".join([f"{where}:", *(fenced if quoted else []), "", comment.text.strip()]))
    return "\n\n".join(parts)


def _chosen(hunk: ReviewedHunk, comment: ReviewComment) -> tuple[int, Sequence[str]]:
    """Give the lines that a comment is about, with the number of the first."""
    lines, number = (hunk.old, hunk.old_first) if comment.side == "old" else (hunk.new, hunk.new_first)
    return number + comment.first, lines[comment.first : comment.last + 1]


def _lines_of(hunk: ReviewedHunk, comment: ReviewComment) -> str:
    if comment.side:
        number, lines = _chosen(hunk, comment)
    elif hunk.new:
        number, lines = hunk.new_first, hunk.new
    else:
        number, lines = hunk.old_first, hunk.old
    last = number + max(1, len(lines)) - 1
    gone = " before the change" if comment.side == "old" or not hunk.new else ""
    return f"line {number}{gone}" if last == number else f"lines {number} to {last}{gone}"


def _quoted(hunk: ReviewedHunk, comment: ReviewComment) -> list[str]:
    if comment.side:
        sign = "-" if comment.side == "old" else "+"
        lines = [f"{sign}{line}" for line in _chosen(hunk, comment)[1]]
    else:
        lines = [*(f"-{line}" for line in hunk.old), *(f"+{line}" for line in hunk.new)]
    more = len(lines) - _MOST_QUOTED
    return [*lines[:_MOST_QUOTED], *([f"… {counted(more, 'more line')}"] if more > 0 else [])]

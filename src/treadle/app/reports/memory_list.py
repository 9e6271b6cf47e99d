"""What is remembered, as lines of text with dates and tokens; and how a person adds, edits and forgets it."""

import time
from collections.abc import Iterator
from datetime import date
from pathlib import Path

from treadle.app.config.layers import load_settings
from treadle.app.security.trusting import SessionTrust, shown_path, trust_command
from treadle.app.session.known_values import session_redactor
from treadle.app.session.rules.memory_files import (
    MemoryOf,
    SavedMemory,
    change_memory,
    is_used,
    memory_file,
    saved_memory,
)
from treadle.context.remembered import MOST_REMEMBERED, MemoryEntry, sent_entries, with_entry, without_entry
from treadle.protocol.base import Record
from treadle.protocol.errors import ConfigError
from treadle.workspace.files.private_file import make_private_folder, write_private

MEMORY_USAGE = (
    "`/memory add TEXT` and `/memory add user TEXT` remember something, `/memory forget N` forgets it, `/memory edit` "
    "and `/memory edit user` open a file in your editor. What you change applies from the next session on."
)
_WHOSE = {
    MemoryOf.PROJECT: "For this project",
    MemoryOf.USER: "For you, in every project",
}


class MemoryLine(Record, frozen=True, kw_only=True, omit_defaults=False):
    """One entry: `n` is its number, `day` is empty without a date, `sent` says whether requests carry it.

    `notes` say what speaks for forgetting it.
    """

    n: int
    whose: MemoryOf
    day: str
    text: str
    tokens: int
    sent: bool
    notes: tuple[str, ...]
    file: str


def memory_lines(trust: SessionTrust) -> tuple[MemoryLine, ...]:
    """List the entries of both files, the project's first, in the order in which they are numbered."""
    today = _today()
    found = [(saved, entry) for saved in _both(trust) for entry in saved.entries]
    sent = {whose: _sent(saved, trust) for whose, saved in zip(MemoryOf, _both(trust), strict=True)}
    return tuple(
        MemoryLine(
            n=number,
            whose=saved.whose,
            day="" if entry.day is None else str(entry.day),
            text=entry.text,
            tokens=entry.tokens,
            sent=entry in sent[saved.whose],
            notes=entry.notes(today),
            file=str(saved.file),
        )
        for number, (saved, entry) in enumerate(found, 1)
    )


def memory_text(trust: SessionTrust, usage: str = MEMORY_USAGE) -> str:
    """Write both files with their entries, dates and tokens, and how they are changed."""
    return "\n".join((*_listed(trust), usage))


def _listed(trust: SessionTrust) -> Iterator[str]:
    lines = memory_lines(trust)
    for saved in _both(trust):
        own = [line for line in lines if line.whose is saved.whose]
        used = sum(line.tokens for line in own if line.sent)
        price = (
            f"about {used:,} of at most {MOST_REMEMBERED:,} tokens in each request" if own else "nothing is remembered"
        )
        yield f"{_WHOSE[saved.whose]}: {price}"
        yield f"    {shown_path(str(saved.file))}"
        if saved.problem:
            yield f"    not used: {saved.problem}"
        elif own and not is_used(saved.whose, trust):
            yield f"    not used: this folder is not trusted. To use it: {trust_command(trust.workspace)}"
        for line in own:
            notes = [*line.notes, *(["not sent"] if not line.sent else [])]
            marks = f"  [{'; '.join(notes)}]" if notes else ""
            yield f"{line.n:>3}  {line.day or '-':<10}  {line.tokens:>4,} tokens  {shown_path(line.text)}{marks}"
    to_review = [str(line.n) for line in lines if line.notes]
    if to_review:
        yield f"Is each of these still needed: {', '.join(to_review)}? Forget what is not."


_LISTED = "The list has their numbers: `treadle memory`, in a session /memory."


def remember_text(whose: MemoryOf, trust: SessionTrust, said: str) -> str:
    """Add what a person says, which needs no approval. Gives what to show; raises `ConfigError`."""
    said = " ".join(said.split())
    if not said:
        raise ConfigError("memory-entry", "There is nothing to remember.", fix="Write it behind `add`.")
    if not is_used(whose, trust):
        raise ConfigError(
            "memory-entry",
            "Nothing is remembered for this folder.",
            why="It is not trusted.",
            fix=f"{trust_command(trust.workspace)}; or remember it for yourself, in every project.",
        )
    redactor = session_redactor(str(trust.workspace), load_settings({}))
    if redactor.redact(said) != said:
        raise ConfigError(
            "memory-entry",
            "This holds a secret, which is never remembered.",
            why="What is remembered is sent with each request.",
            fix="Say where the secret is found instead.",
        )
    saved = change_memory(whose, trust.workspace, lambda now: with_entry(now.text or "", said, _today()))
    entry = saved.entries[-1]
    told = f"Remembered: {shown_path(entry.line)}\n{_WHOSE[whose]}, about {entry.tokens:,} tokens in each request"
    if entry in sent_entries(saved.entries):
        return f"{told} from the next session on."
    return f"{told}; not sent: what is before it takes up the {MOST_REMEMBERED:,} tokens. Forget something."


def forget(trust: SessionTrust, number: int) -> str:
    """Forget an entry by its number. Gives what to show; raises `ConfigError`."""
    line = next((line for line in memory_lines(trust) if line.n == number), None)
    if line is None:
        raise ConfigError("memory-entry", f"There is no entry {number}.", fix=_LISTED)

    def changed(now: SavedMemory) -> str:
        entry = next((one for one in now.entries if (one.text, _written(one)) == (line.text, line.day)), None)
        if entry is None:  # another session forgot it meanwhile
            raise ConfigError("memory-entry", f"There is no entry {number} any more.", fix=_LISTED)
        return without_entry(now.text or "", entry)

    change_memory(line.whose, trust.workspace, changed)
    day = f"{line.day}: " if line.day else ""
    return f"Forgotten: {day}{shown_path(line.text)}\nSessions that run now still have it until they end."


def opened_memory(whose: MemoryOf, trust: SessionTrust) -> SavedMemory:
    """Read a file to be edited. Raises `ConfigError` for one that is no text."""
    saved = saved_memory(whose, trust.workspace)
    if saved.problem:
        raise ConfigError(
            "memory-file",
            "The memory file cannot be edited here.",
            why=f"{shown_path(str(saved.file))}: {saved.problem}",
            fix="Edit or remove the file itself.",
        )
    return saved


def save_edited(opened: SavedMemory, trust: SessionTrust, text: str) -> str:
    """Save what a person made of a file in their editor; where it was changed meanwhile, beside it."""
    if text == (opened.text or ""):
        return "The memory is as it was."
    beside = opened.file.with_name(f"{opened.file.name}.edited")

    def changed(now: SavedMemory) -> str:
        if now.text == opened.text:
            return text
        write_private(beside, text.encode())
        raise ConfigError(
            "memory-file",
            "The memory file was changed meanwhile.",
            why=f"Yours is kept in {shown_path(str(beside))}.",
            fix="Put both together, and remove that file.",
        )

    saved = change_memory(opened.whose, trust.workspace, changed)
    tokens = sum(entry.tokens for entry in sent_entries(saved.entries))
    return f"Saved: about {tokens:,} tokens in each request from the next session on."


def file_to_edit(whose: MemoryOf, workspace: Path) -> Path:
    """Give the file itself for the person's editor; its folder is there then."""
    file = memory_file(whose, workspace)
    make_private_folder(file.parent)
    return file


def _both(trust: SessionTrust) -> tuple[SavedMemory, ...]:
    return tuple(saved_memory(whose, trust.workspace) for whose in MemoryOf)


def _sent(saved: SavedMemory, trust: SessionTrust) -> tuple[MemoryEntry, ...]:
    return sent_entries(saved.entries) if is_used(saved.whose, trust) else ()


def _written(entry: MemoryEntry) -> str:
    return "" if entry.day is None else str(entry.day)


def _today() -> date:
    return date.fromtimestamp(time.time())  # noqa: DTZ012 - the day where the person is

"""Control files that came into being while a command ran: found when it has ended, and moved out of the workspace.

What the folders had before is noted in Treadle's data while the command runs, so that a Treadle that was killed
meanwhile finds what was made when it starts again.
"""

import contextlib
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from treadle.workspace.files.owners import Owner, lives, owner_of
from treadle.workspace.files.paths import Listed, Unlisted, list_folder, may_be_there
from treadle.workspace.files.private_file import make_private_folder
from treadle.workspace.sandbox.control_stamp import control_stamp
from treadle.workspace.sandbox.moving import make_listable, move_out, restore_link
from treadle.workspace.sandbox.profile import is_within
from treadle.workspace.sandbox.program_sleep import SleepMark
from treadle.workspace.sandbox.survey import PathFilter, Survey, Surveyor
from treadle.workspace.sandbox.usual import repository_parts, steps_that_run_programs

_NOTES = "running"
_QUARANTINE = "quarantine"
_ALLOWED = ".allowed"
_SHOWN = 5
_MOST_OPENED = 1000
"""How many folders are made listable again after one command."""


class Before(msgspec.Struct, frozen=True, kw_only=True):
    """What there was when a command began: the control files of each folder, and where those lead that are links.

    `repositories` are those whose own data the command may change; `allowed` are paths that it may make. What the
    `unlisted` folders held is not known; the command could not change it. What others made since is part of `control`;
    the command can change that, so `others` has it as they left it. `bare` are folders that were repositories by what
    was in them, whatever they are called, and whether git ran something in them.
    """

    owner: Owner
    control: Mapping[str, Mapping[str, str]]
    repositories: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()
    unlisted: tuple[str, ...] = ()
    others: Mapping[str, str] = {}
    bare: Mapping[str, bool] = {}

    def has(self, root: str, path: str, target: str) -> bool:
        """Whether a path of a folder is as it was before, or as others left it."""
        known = self.control.get(root, {})
        return path in known and known[path] == target and self._is_left(path)

    def _is_left(self, path: str) -> bool:
        left = self.others.get(path)
        return left is None or (bool(left) and left == control_stamp(path))


@dataclass(slots=True)
class _Found:
    """What a check found: the sentences to say of it, what could not be moved away, and what cannot be listed now."""

    said: list[str] = field(default_factory=list)
    stuck: list[str] = field(default_factory=list)
    closed: list[str] = field(default_factory=list)

    def remaining(self) -> Iterator[str]:
        """Give what may still act, or hide what may."""
        yield from filter(may_be_there, self.stuck)
        yield from filter(_is_closed, self.closed)


class MadeFiles:
    """Finds what one command made of control files in the folders of `surveyors`; `surveys` are what there was before.

    `data` is Treadle's own folder. A repository that is new in a folder itself stays where it `is_inert`. `sleep` gives
    a mark that stays the same while the command does nothing: what is new after such a time is somebody else's.
    """

    def __init__(
        self,
        data: Path,
        surveyors: Sequence[Surveyor],
        surveys: Sequence[Survey],
        *,
        repositories: Sequence[str] = (),
        allowed: Sequence[str] = (),
        is_inert: PathFilter = lambda _: False,
        sleep: Callable[[], SleepMark | None] | None = None,
    ) -> None:
        self._data = data
        self._sleep = sleep
        self._slept: SleepMark | None = None
        self._is_inert = is_inert
        self._surveyors = surveyors
        self._lock = threading.Lock()
        self._found = _Found()
        self._before = Before(
            owner=owner_of(os.getpid()),
            control={each.root: dict(found.control) for each, found in zip(surveyors, surveys, strict=True)},
            repositories=tuple(repositories),
            parts=(*repository_parts(repositories), *steps_that_run_programs(repositories)),
            allowed=tuple(allowed),
            unlisted=tuple(path for found in surveys for path in found.unlisted),
            bare=_bare(surveys, is_inert),
        )
        for path in self._before.allowed:
            allow_made(data, path)
        self._note = _write_note(data, self._before)

    def _left_to_others(self) -> bool:
        """Take what is new for somebody else's where the command has slept since the last look, and say whether."""
        if self._sleep is None:
            return False
        before, self._slept = self._slept, self._sleep()
        if before is None or before != self._slept or any(self.remaining()):
            return False
        now = _with_others(self._before, self._surveyors, self._is_inert)
        if now is None or self._sleep() != before:
            return False
        if now != self._before:
            self._before = now
            self._note = _write_note(self._data, now, self._note)
        return True

    def check(self) -> tuple[str, ...]:
        """Move away what was made so far, and say so in a sentence for each."""
        with self._lock:
            if self._left_to_others() and not self._before.repositories:
                self._found = _Found()
                return ()
            allowed = (*_allowed_by(self._note), *_inert(self._before, self._is_inert))
            self._found = _check(self._data, self._surveyors, self._before, allowed, is_inert=self._is_inert)
            return tuple(self._found.said)

    def may_have_made(self, path: str) -> bool:
        """Whether the command may have made a control file: it was not there before, and nobody allowed it."""
        known = (path for control in self._before.control.values() for path in control)
        return not any(is_within(path, one) for one in (*known, *self._before.allowed, *_allowed_by(self._note)))

    def remaining(self) -> tuple[str, ...]:
        """Give what the last check found and could not move away or look into, as far as it is still so."""
        return tuple(self._found.remaining())

    def end(self) -> tuple[str, ...]:
        """Check for the last time: the command has ended."""
        said = self.check()
        _remove_note(self._note)
        return said


def allow_made(data: Path, path: str) -> None:
    """Note for every command that runs now that a control file is written with somebody's yes."""
    for note in _notes(data):
        with contextlib.suppress(OSError), Path(f"{note}{_ALLOWED}").open("ab") as file:
            file.write(os.fsencode(path) + b"\0")


def recover_made(data: Path, *, is_control: PathFilter, is_secret: PathFilter, is_inert: PathFilter) -> tuple[str, ...]:
    """Move away what commands made whose Treadle was killed meanwhile, and say so; tried again where that fails."""
    said: list[str] = []
    for note in _notes(data):
        try:
            before = msgspec.json.decode(note.read_bytes(), type=Before)
        except (OSError, msgspec.DecodeError):
            before = None
        if before is not None and lives(before.owner):
            continue
        found = _Found()
        if before is not None:
            surveyors = [Surveyor(root, is_control=is_control, is_secret=is_secret) for root in before.control]
            allowed = (*_allowed_by(note), *_inert(before, is_inert))
            found = _check(data, surveyors, before, allowed, is_inert=is_inert)
            said += found.said
        if not any(found.remaining()):
            _remove_note(note)
    return tuple(said)


def _with_others(before: Before, surveyors: Sequence[Surveyor], is_inert: PathFilter) -> Before | None:
    """Give what there is now as what was there before; None where not all folders can be listed as they could then.

    A new repository of a folder itself in which git runs nothing stays what is looked at each time.
    """
    control: dict[str, Mapping[str, str]] = {}
    others: dict[str, str] = {}
    surveys = [surveyor.look() for surveyor in surveyors]
    for surveyor, survey in zip(surveyors, surveys, strict=True):
        if not set(survey.unlisted) <= set(before.unlisted):
            return None
        known, own = before.control.get(surveyor.root, {}), f"{surveyor.root}/.git"
        found = {path: target for path, target in survey.control if path != own or path in known or not is_inert(own)}
        control[surveyor.root] = found
        others |= {path: control_stamp(path) for path in found if path not in known or path in before.others}
    return msgspec.structs.replace(before, control=control, others=others, bare=_bare(surveys, is_inert))


def _write_note(data: Path, before: Before, instead: Path | None = None) -> Path | None:
    """Write what there was; a full disk costs what a killed Treadle would find, not the command."""
    note = instead or data / _NOTES / f"{before.owner.pid}-{secrets.token_hex(8)}.json"
    fresh = note.with_suffix(".new")
    try:
        make_private_folder(note.parent)
        fresh.write_bytes(msgspec.json.encode(before))
        fresh.replace(note)
    except (OSError, UnicodeEncodeError):
        with contextlib.suppress(OSError):
            fresh.unlink(missing_ok=True)
        return instead
    return note


def _remove_note(note: Path | None) -> None:
    if note is not None:
        note.unlink(missing_ok=True)
        Path(f"{note}{_ALLOWED}").unlink(missing_ok=True)


def _notes(data: Path) -> list[Path]:
    try:
        return [path for path in (data / _NOTES).iterdir() if path.suffix == ".json"]
    except OSError:
        return []


def _allowed_by(note: Path | None) -> tuple[str, ...]:
    try:
        text = Path(f"{note}{_ALLOWED}").read_bytes()
    except OSError:
        return ()
    return tuple(os.fsdecode(path) for path in text.split(b"\0")[:-1])


def _bare(surveys: Iterable[Survey], is_inert: PathFilter) -> dict[str, bool]:
    """Give the folders that are repositories by what is in them, and whether git runs something in them."""
    return {path: not is_inert(path) for found in surveys for path in found.repositories}


def _acting(survey: Survey, before: Before, is_inert: PathFilter) -> Iterator[str]:
    """Give by what a folder is a repository, or one in which git runs something, and was not before."""
    for folder in survey.repositories:
        was_acting = before.bare.get(folder)
        if was_acting or is_inert(folder):
            continue
        if was_acting is not None:
            yield from repository_parts((folder,))
        elif isinstance(listed := list_folder(folder), Listed):
            yield from (f"{folder}/{entry.name}" for entry in listed.entries if entry.name.casefold() == "head")


def _inert(before: Before, is_inert: PathFilter) -> Iterator[str]:
    """Give the repositories that are new in the folders themselves and in which git runs nothing."""
    new = (f"{root}/.git" for root, known in before.control.items() if f"{root}/.git" not in known)
    return (path for path in new if may_be_there(path) and is_inert(path))


def _check(
    data: Path, surveyors: Sequence[Surveyor], before: Before, allowed: tuple[str, ...], *, is_inert: PathFilter
) -> _Found:
    place = data / _QUARANTINE / f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(3)}"
    found = _Found()
    free = (*before.allowed, *allowed)
    for surveyor in surveyors:
        known, survey = before.control.get(surveyor.root, {}), _listed_again(surveyor, before, found)
        # What could not be listed before could not be changed either: nothing in there was made.
        new = (path for path, target in survey.control if not before.has(surveyor.root, path, target))
        for path in (*new, *_acting(survey, before, is_inert)):
            for each in _not_free(path, (*free, *before.unlisted)):
                verb = "changed" if each in before.others else "made"
                _move_away(surveyor.root, each, place, found, link=known.get(each, ""), verb=verb)
        now = dict(survey.control)
        for path in [path for path, target in known.items() if target and path not in now]:
            found.said += restore_link(surveyor.root, path, known[path])
    for repository in before.repositories:
        for path in _made_parts(repository, before, found):
            for each in _not_free(path, free):
                _move_away(repository, each, place, found)
    if len(found.said) > _SHOWN:
        found.said[_SHOWN:] = [f"{len(found.said) - _SHOWN} more such files were moved to {place}."]
    return found


def _not_free(path: str, free: Sequence[str]) -> Iterator[str]:
    """Give what of a path may not have been made: all of it, or where a part is `free` the rest of it."""
    if any(is_within(path, each) for each in free):
        return
    inside = list_folder(path) if any(is_within(each, path) for each in free) else None
    if not isinstance(inside, Listed):
        yield path
        return
    for entry in inside.entries:
        yield from _not_free(f"{path}/{entry.name}", free)


def _listed_again(surveyor: Surveyor, before: Before, found: _Found) -> Survey:
    """Look, and make the folders listable again that could be listed before the command: it may have hidden a file."""
    tried: set[str] = set()
    while True:
        survey = surveyor.look()
        closed = {path for path in survey.unlisted if not any(is_within(path, each) for each in before.unlisted)}
        if closed <= tried or len(tried) > _MOST_OPENED:
            found.closed += sorted(closed)
            return survey
        found.said += [_relisted(surveyor.root, path) for path in sorted(closed - tried)]
        tried |= closed


def _made_parts(repository: str, before: Before, found: _Found) -> Iterator[str]:
    """Give the parts of a repository's data that were not there before; its folders can be looked into again first."""
    tried: set[str] = set()
    # A part that could not be looked into before stood for what is in it.
    while new := [
        path
        for path in (*repository_parts((repository,)), *steps_that_run_programs((repository,)))
        if not any(is_within(path, part) for part in before.parts)
    ]:
        closed = {path for path in new if _is_closed(path)}
        if closed <= tried:
            found.closed += closed
            return iter([path for path in new if path not in closed])
        closed -= tried
        tried |= closed
        found.said += [_relisted(repository, path) for path in sorted(closed)]
    return iter(())


def _is_closed(path: str) -> bool:
    return isinstance(list_folder(path), Unlisted)


def _relisted(root: str, path: str) -> str:
    """Let a folder be listed again by its user, and say so."""
    name = os.path.relpath(path, root)
    try:
        make_listable(root, name)
    except OSError as error:
        return f"{name} cannot be listed since the command ran, and this cannot be changed: {error}."
    return f"{name} could not be listed after the command, so what it holds was not known. It can be listed again."


def _move_away(root: str, path: str, place: Path, found: _Found, *, link: str = "", verb: str = "made") -> None:
    said, moved = move_out(root, path, place, link=link, verb=verb)
    found.said.append(said)
    if not moved:
        found.stuck.append(path)

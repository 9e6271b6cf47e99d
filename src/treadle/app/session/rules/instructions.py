"""The rules of a session: what of them every request begins with, and what the model reads when it touches a file."""

import asyncio
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from treadle.app.config.places import config_file, data_directory, name_for
from treadle.app.security.trusting import SessionTrust, keep_trusted
from treadle.context.system import RULES_HEADING, fenced
from treadle.protocol.base import Record
from treadle.protocol.events import CallFinished, CallJudged, Compacted, Event, Noted, Prompt
from treadle.protocol.messages import EnclosureKind
from treadle.protocol.permissions import Verdict
from treadle.protocol.sealed import Passage, PassageKind, PromptPart
from treadle.protocol.tools import ReadPath, WritePath

if TYPE_CHECKING:
    from treadle.app.session.rules.rule_files import PromptRule

_MOST_AT_ONCE = 65_536
"""Characters of rules that one message brings; the others come with the next one."""

_TOUCHED = "Rules for what you have just worked on. They hold from here on, as those at the beginning do.\n\n"
_DESCRIBED = """# Further rules

Read one of these files when what it is about comes up:
"""


class _Off(Record, frozen=True, kw_only=True):
    """What is kept of a workspace: the rules that are turned off, by their origins."""

    workspace: str
    off: tuple[str, ...]


class RuleSwitches:
    """Which rules are turned off in a workspace, kept in the user's data; another process may change it."""

    def __init__(self, workspace: Path) -> None:
        self._workspace = str(workspace)
        self._file = data_directory() / "rules" / name_for(workspace, ".json")
        self._seen: tuple[int, int] | None = None
        self._off: frozenset[str] = frozenset()

    def off(self) -> frozenset[str]:
        """Give the origins of the rules that are off; what cannot be read turns none off."""
        try:
            found = self._file.stat()
        except OSError:
            return frozenset()
        if self._seen != (found.st_mtime_ns, found.st_ino):
            self._seen = (found.st_mtime_ns, found.st_ino)
            self._off = frozenset()
            with suppress(OSError, msgspec.MsgspecError):
                self._off = frozenset(msgspec.json.decode(self._file.read_bytes(), type=_Off).off)
        return self._off

    def turn(self, origin: str, *, on: bool) -> None:
        """Turn a rule on or off. Raises `OSError`."""
        from treadle.workspace.files.private_file import write_private

        off = self.off() - {origin} if on else self.off() | {origin}
        write_private(self._file, msgspec.json.encode(_Off(workspace=self._workspace, off=tuple(sorted(off)))))


class RuleBook:
    """The rules of one session, as they were when it began. `hide` takes secrets out of what is sent later."""

    def __init__(self, trust: SessionTrust, hide: Callable[[str], str] = str) -> None:
        self._trust = trust
        self._hide = hide
        self.switches = RuleSwitches(trust.workspace)
        self._rules: list[PromptRule] = _read(trust)
        self._memory = _remembered(trust)
        self._touched: list[str] = []
        self._asked: set[str] = set()
        self._looked: set[str] = {str(trust.workspace)}
        self._waiting: dict[str, PromptRule] = {}
        self._noted: dict[str, PromptRule] = {}

    def in_force(self) -> "Iterator[PromptRule]":
        """Give the rules that are turned on and can apply."""
        off = self.switches.off()
        return (rule for rule in self._rules if not rule.unused and rule.origin not in off)

    def by_name(self, name: str) -> "PromptRule | None":
        """Find a rule that is turned on by the name of its file, with or without the ending, or by its path."""
        return next((rule for rule in self.in_force() if name in rule.names), None)

    def parts(self) -> Iterator[PromptPart]:
        """Give what of the rules every request begins with."""
        rules = list(self.in_force())
        always = [block for rule in rules if rule.use == "always" for block in rule.blocks]
        if always:
            yield PromptPart(name="rules", text=RULES_HEADING)
        for block in always:
            yield PromptPart(name="rules", text=fenced(block), origin=block.origin)
        described = [f"- {rule.origin}: {rule.description}" for rule in rules if rule.use == "described"]
        if described:
            yield PromptPart(name="further rules", text="\n".join((_DESCRIBED, *described)))
        yield from self._memory

    def recall(self, read: Iterable[str], left: Iterable[str]) -> None:
        """Take up a session: which rules its conversation holds from notes, and which have left it."""
        for origin in (*read, *left):
            for folder in self._folders(str(self._trust.workspace / origin)):
                self._look_into(folder)
        known = {rule.origin: rule for rule in self._rules if not rule.unused}
        self._noted = {origin: known[origin] for origin in read if origin in known}
        self._waiting = {origin: known[origin] for origin in left if origin in known}

    async def observe(self, events: Sequence[Event], /) -> None:
        """Note what is touched; after messages left, what they said of rules is to be said again."""
        for event in events:
            match event.data:
                case CallJudged(call_id=call_id, accesses=accesses, decision=decision):
                    self._touched += [one.path for one in accesses if isinstance(one, ReadPath | WritePath)]
                    if decision.verdict is Verdict.REQUIRE_USER_CONFIRMATION:
                        self._asked.add(call_id)
                case CallFinished(call_id=call_id, result=result) if call_id in self._asked:
                    for change in result.changes:
                        await asyncio.to_thread(keep_trusted, self._trust, change)
                case Prompt(enclosed=enclosed):
                    mentioned = (one for one in enclosed if one.kind in (EnclosureKind.FILE, EnclosureKind.FOLDER))
                    self._touched += [str(self._trust.workspace / one.origin) for one in mentioned]
                case Compacted():
                    self._waiting = {**self._noted, **self._waiting}
                    self._noted = {}
                case _:
                    pass

    async def before_step(self) -> Noted | None:
        """Give the rules that apply to what was touched, each once."""
        touched, self._touched = list(dict.fromkeys(self._touched)), []
        if touched and (self._rules or self._trust.trusted):
            await asyncio.to_thread(self._find, touched)
        if not self._waiting:
            return None
        off, left = self.switches.off(), _MOST_AT_ONCE
        notes: list[Passage] = []
        for origin, rule in list(self._waiting.items()):
            if notes and rule.size > left:
                break
            del self._waiting[origin]
            if origin not in off:
                left -= rule.size
                self._noted[origin] = rule
                notes.append(_note(rule, self._hide))
        return Noted(notes=tuple(notes)) if notes else None

    def _find(self, touched: Sequence[str]) -> None:
        """Look for rules in the folders on the way to each path, and for those whose paths fit."""
        for path in touched:
            for folder in self._folders(path):
                self._look_into(folder)
            for rule in self._rules:
                if (
                    rule.use == "touched"
                    and not rule.unused
                    and rule.origin not in self._noted
                    and rule.applies_to(path)
                ):
                    self._waiting.setdefault(rule.origin, rule)

    def _folders(self, path: str) -> list[Path]:
        """Give the folders from the workspace down to a path that were not looked into."""
        root = str(self._trust.workspace)
        if not path.startswith(f"{root}/"):
            return []
        file = Path(path)
        inside = [folder for folder in (file, *file.parents) if str(folder).startswith(f"{root}/")]
        return [folder for folder in reversed(inside) if str(folder) not in self._looked]

    def _look_into(self, folder: Path) -> None:
        self._looked.add(str(folder))
        if self._trust.trusted and folder.is_dir():
            from treadle.app.session.rules.rule_files import nested_rules

            self._rules += nested_rules(self._trust, folder)


def _read(trust: SessionTrust) -> "list[PromptRule]":
    """Read the rules; what reads them is loaded only where there are any."""
    users = config_file().parent
    own = os.path.lexists(users / "AGENTS.md") or (users / "rules").is_dir()
    if not own and not trust.rules:
        return []
    from treadle.app.session.rules.rule_files import find_rules

    return list(find_rules(trust))


def _remembered(trust: SessionTrust) -> tuple[PromptPart, ...]:
    """Read what is remembered; what reads it is loaded only where there is a memory file."""
    if not os.path.lexists(config_file().with_name("memory.md")) and not os.path.lexists(data_directory() / "memory"):
        return ()
    from treadle.app.session.rules.memory_files import memory_parts

    return tuple(memory_parts(trust))


def _note(rule: "PromptRule", hide: Callable[[str], str]) -> Passage:
    blocks = "\n\n".join(fenced(block) for block in rule.blocks)
    return Passage(kind=PassageKind.RULES, text=f"{_TOUCHED}{hide(blocks)}", origin=rule.origin)

"""Sessions in which trials, hooks, checkpoints and the person meet, at random: what is told is what is there.

Each life is one session with hooks of its own. Its model runs lines with effects of all kinds; a person answers, edits
a file while a question waits, and undoes turns. After each turn the workspace is what the line makes of it when it
runs bare, or what it was, as the model was told; an undo brings back all that checkpoints cover.
"""

import os
import random
import shutil
import subprocess
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.e2e.effects.driving import DISCARDED, KEPT, STATUS
from tests.e2e.effects.table import DATES, EFFECTS, lay_out, state_of
from treadle.app.checkpoints.points import Points
from treadle.app.compose import Opening, open_session, session_log
from treadle.app.config.layers import load_settings
from treadle.app.security.trusting import session_trust
from treadle.app.session.live import LiveSession
from treadle.protocol.checkpoints import Restore, Restored
from treadle.protocol.events import Answer, Prompt, Source
from treadle.protocol.messages import Text, text_of
from treadle.protocol.notifications import CallChanged, FilesRestored, QuestionAsked, TurnEnded
from treadle.protocol.permissions import Mode, OptionKind, Question
from treadle.protocol.tools import CallResult
from treadle.providers.scripted.script import MakeCall, Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer

PERSON = Source(kind="test")
LINES = (
    "nothing", "edit", "new files", "delete", "rename", "folder with ignored", "folder removed", "mode", "link",
    "binary", "fails half-way", "fails", "build and source", "build and use", "make", "database migrated",
    "ends itself", "ignored changed", "ignored removed", "package scripts", "control file", "secret",
    "link out", "commit", "stash and pop", "mixed",
)  # fmt: skip
"""The effects that are run, of those in the table."""

_HOOK = "echo {} >> {}; exit {}"
_EVENTS = ("PreToolUse", "PermissionRequest", "PostToolUse", "PostToolUseFailure", "Notification", "Stop")
_ANSWERS = (OptionKind.ALLOW_ONCE, OptionKind.ALLOW_ONCE, OptionKind.REJECT_ONCE, OptionKind.RUN_FOR_REAL)
_PERSONS = "person.txt"


@dataclass
class Lived:
    """What came of one life."""

    turns: int = 0
    met: Counter[str] = field(default_factory=Counter)
    troubles: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Hook:
    """A hook that writes its event to a file, and ends like this."""

    event: str
    file: str
    status: int

    @property
    def line(self) -> str:
        return _HOOK.format(self.event, self.file, self.status)


class _Life:
    def __init__(self, seed: str, folder: Path) -> None:
        self.found = Lived()
        self._chance = random.Random(seed)
        self._folder = folder
        self._work = folder / "ws"
        self._home = folder / "home"
        self._hooks = tuple(
            Hook(event, self._chance.choice(("a.txt", "hooked.txt")), self._chance.choice((0, 0, 0, 1)))
            for event in self._chance.sample(_EVENTS, self._chance.randrange(4))
        )
        self._mode = self._chance.choice((Mode.ASK, Mode.ASK, Mode.EDITS, Mode.AUTO))

    async def live(self, turns: int) -> None:
        """Do so many turns."""
        self._home.mkdir(parents=True)
        row = '[[hooks.{0.event}]]\nhooks = [{{ type = "command", command = "{0.line}" }}]'
        rows = map(row.format, self._hooks)
        (self._home / "config.toml").write_text("\n".join(rows))
        lay_out(self._work)
        names = [self._chance.choice(LINES) for _ in range(turns)]
        done = MakeCall(name="attempt_completion", arguments={"result": "Done."})
        replies = [
            Turn(items=(one,))
            for name in names
            for one in (MakeCall(name="execute_command", arguments={"command": EFFECTS[name]}), done)
        ]
        trust = session_trust(self._work, once=True)
        async with ScriptedServer(Script(turns=tuple(replies))) as server:
            model = {"model": "anthropic-compatible/scripted", "tool_protocol": "native"}
            flags = {"base_url": server.base_url, "mode": self._mode.value, **model}
            chosen = load_settings(flags, workspace=self._work, trusted=True)
            opening = Opening(workspace=self._work, settings=chosen, user_present=True, trust=trust)
            async with await open_session(opening) as live:
                for number, name in enumerate(names):
                    await self._turn(live, number, name)

    def _bare(self, name: str) -> tuple[dict[str, str], int]:
        """Run a line bare, where the session will; the workspace is put aside meanwhile."""
        aside = self._folder / "aside"
        self._work.rename(aside)
        shutil.copytree(aside, self._work, symlinks=True)
        done = subprocess.run(
            ["bash", "-c", EFFECTS[name]], cwd=self._work, check=False, capture_output=True, env={**os.environ, **DATES}
        )
        state = self._state()
        shutil.rmtree(self._work)
        aside.rename(self._work)
        return state, done.returncode

    async def _turn(self, live: LiveSession, number: int, name: str) -> None:
        before = self._state()
        bare, status = self._bare(name)
        answer = self._chance.choice(_ANSWERS)
        text, asked = await self._done(live, number, answer, edits=self._chance.random() < 0.2)
        after = self._state()
        what = f"turn {number}, {name}, {answer}, asked {asked}"
        fate, wanted = _fate(text, status, before, bare)
        self.found.turns += 1
        self.found.met.update((fate, name))
        if not any(self._own(after) == self._own(one) for one in wanted):
            differs = _differences(self._own(wanted[0]), self._own(after))
            self.found.troubles.append(f"{what}: {fate} is told, which differs in {differs}: {text!r}")
        if self._chance.random() < 0.7:
            await self._undo(live, f"{what}: {text!r}", before, after)

    async def _done(self, live: LiveSession, number: int, answer: OptionKind, *, edits: bool) -> tuple[str, int]:
        """Have a turn done; gives what was told of its command, and how often was asked."""
        told, asked = "nothing", 0
        feed = live.follow()
        await live.post(Prompt(id=f"p{number}", content=(Text(text="Go on."),)), PERSON)
        async for item in feed:
            match item:
                case QuestionAsked(question=question):
                    asked += 1
                    if edits and question.copy is not None:
                        with (self._work / _PERSONS).open("a") as file:
                            file.write(f"{number}\n")
                    await live.post(Answer(question_id=question.id, option=_option(question, answer)), PERSON)
                case CallChanged(result=CallResult() as result, call=called) if called.name == "execute_command":
                    told = text_of(result.content)
                case TurnEnded():
                    break
                case _:
                    pass
        return told, asked

    async def _undo(self, live: LiveSession, what: str, before: Mapping[str, str], after: Mapping[str, str]) -> None:
        with session_log(live.id) as (row, store):
            n = Points(store, row.id).undo()
        one, two = (_covered(self._own(state)) for state in (before, after))
        if one == two:
            return  # an undo would take an earlier turn back
        if not n:
            self.found.troubles.append(f"{what}: nothing to undo, but {_differences(one, two)}")
            return
        restored = await self._restored(live, n)
        now = _covered(self._own(self._state()))
        named = {Path(conflict.path).relative_to(self._work).as_posix() for conflict in restored.conflicts}
        self.found.met["undone"] += 1
        self.found.met["conflicts"] += bool(named)
        if restored.error or set(_differences(one, now)) - named:
            self.found.troubles.append(f"{what}: undo left {_differences(one, now)}: {restored}")
        if named - {hook.file for hook in self._hooks}:
            self.found.troubles.append(f"{what}: undo has conflicts where nobody else wrote: {restored}")

    @staticmethod
    async def _restored(live: LiveSession, n: int) -> Restored:
        feed = live.follow()
        await live.post(Restore(checkpoint=n), PERSON)
        async for item in feed:
            if isinstance(item, FilesRestored):
                return item.restored
        raise AssertionError("the session ended")

    def _own(self, state: Mapping[str, str]) -> dict[str, str]:
        """Leave out what hooks and the person write, and git's data, which has that in it."""
        theirs = {_PERSONS, *(hook.file for hook in self._hooks)}
        theirs |= {"renamed.txt"} if "a.txt" in theirs else set()
        return {
            name: value
            for name, value in state.items()
            if name not in theirs and not name.startswith((".git/", "git for", "git status", "git worktree"))
        }

    def _state(self) -> dict[str, str]:
        return state_of(self._work)


def _fate(
    text: str, status: int, before: Mapping[str, str], bare: Mapping[str, str]
) -> tuple[str, tuple[Mapping[str, str], ...]]:
    """Say what was told of a command that ends with this status when it runs bare, and what that lets be there."""
    if KEPT.search(text):
        return "kept", (bare,)
    if DISCARDED.search(text) or "Nothing was applied" in text:
        return "not kept", (before,)
    found = STATUS.search(text)
    return ("run", (bare,)) if found is not None and int(found[1]) == status else ("cut", (bare, before))


def _option(question: Question, wanted: OptionKind) -> OptionKind:
    if wanted in question.options:
        return wanted
    return OptionKind.ALLOW_ONCE if OptionKind.ALLOW_ONCE in question.options else OptionKind.RUN_FOR_REAL


def _covered(state: Mapping[str, str]) -> dict[str, str]:
    """Leave out what no checkpoint covers."""
    return {
        name: value
        for name, value in state.items()
        if name.partition("/")[0] != "build" and not name.startswith("git ") and not value.startswith("folder")
    }


def _differences(one: Mapping[str, str], two: Mapping[str, str]) -> list[str]:
    return [name for name in sorted({*one, *two}) if one.get(name) != two.get(name)]


async def live_through(seed: str, folder: Path, turns: int) -> Lived:
    """Live one life of so many turns."""
    os.environ["TREADLE_HOME"] = str(folder / "home")
    life = _Life(seed, folder.resolve())
    await life.live(turns)
    return life.found

"""What a model does in sessions that are killed, what that makes of their workspace, and what has to be told of it."""

import os
import random
import re
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.rehearsal.model import call, reply, run
from treadle.protocol.permissions import Mode
from treadle.providers.scripted.player import Performance, perform
from treadle.providers.scripted.script import MakeCall, Pace, Wait
from treadle.providers.scripted.scripted_server import ScriptedServer
from treadle.providers.scripted.seen_requests import SeenRequest

THINKS = 60.0
"""Seconds that the model thinks when it has nothing more to do: until the program is killed."""

MOVES = 4
"""Calls of the model in one run at most."""

KINDS = ("set", "set", "commit", "host", "push", "server", "write")

_FILES = 150
_LAYOUT = f"""
git init -q -b main; git config user.name t; git config user.email t@t; git config gc.auto 0
mkdir many; for n in $(seq {_FILES}); do echo 0 > many/$n; done; : > gone-0; ln -s many/0 link; mkdir d-0; : > d-0/in
echo 0 > written.txt; echo 0 > note.txt
cat > change.sh <<'END'
for file in many/*; do echo $1 > $file; done
rm -rf gone-* d-*; : > gone-$1; ln -sfn many/$1 link; mkdir d-$1; : > d-$1/in
END
printf 'echo $1 > note.txt; git commit -qm $1 -- note.txt\\n' > commit.sh
printf 'many\\ngone-*\\nlink\\nd-*\\nwritten.txt\\n' > .git/info/exclude
git add . && git commit -qm 0
git init -q --bare ../away.git; git remote add away ../away.git
"""
_LOOK_UP = "python3 -c \"import socket; print(socket.getaddrinfo('{}.example.org', 443))\""

UNKNOWN = re.compile(r"Outcome unknown")
_KEPT = re.compile(r"The user kept its changes\. They are in the workspace now")
_NOT = re.compile(
    r"Changes that were discarded|The user rejected this call|^Denied|Nothing was applied|^Not run|Nothing was changed"
)
_STATUS = re.compile(r"Exit status (\d+)")


@dataclass(frozen=True)
class Moment:
    """When a program is killed: so many seconds after something (see `_Run`), at the latest `most` after its start."""

    what: str
    seconds: float
    most: float = 8.0


_LEADS: Mapping[str, tuple[str, ...]] = {
    "a trial is asked about": ("set",),
    "a trial is answered": ("set",),
    "a trial is kept": ("set",),
    "a host is asked about": ("host",),
    "a host is answered": ("host",),
    "git is asked about": ("push",),
    "git is answered": ("push",),
    "git writes": ("commit",),
    "a call is asked about": ("commit", "push", "server"),
    "a call is answered": ("commit", "push", "server", "write"),
    "a call runs": ("set", "commit", "push", "host", "write"),
    "a port is open": ("server",),
    "it starts": (),
    "some time": (),
}
"""Each moment, and the calls that lead to it."""

_NOT_IN = {
    Mode.AUTO: ("a trial is asked about", "a trial is answered", "a trial is kept", "a call is asked about"),
    Mode.ASK: ("git is asked about", "git is answered"),
    Mode.EDITS: ("git is asked about", "git is answered"),
}
_LATER = {"a trial is kept": 0.03, "git writes": 0.01, "it starts": 0.6, "some time": 4.0}
"""Seconds after the moment at which the program is killed at the latest, where it is not a quarter of one."""


def moments(mode: Mode, chance: random.Random) -> Iterator[Moment]:
    """Choose moments without end: those that a session of this mode can come to."""
    possible = [what for what in _LEADS if what not in _NOT_IN[mode]]
    while True:
        what = chance.choice(possible)
        yield Moment(what, chance.random() * _LATER.get(what, 0.25))


class Workspace:
    """A workspace whose parts bear the number of the call that changed them last."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        subprocess.run(["bash", "-ec", _LAYOUT], cwd=folder, check=True, capture_output=True)

    def numbers(self) -> dict[str, set[str]]:
        """Give the numbers that each part bears: one, unless it is half changed."""
        many = {file.read_text().strip() for file in (self.folder / "many").iterdir()}
        others = {path.name.partition("-")[2] for path in self.folder.glob("gone-*")}
        folders = {path.parent.name.partition("-")[2] for path in self.folder.glob("d-*/in")}
        link = os.readlink(self.folder / "link").partition("/")[2]  # noqa: PTH115 - its text
        return {
            "set": {*many, *others, *folders, link},
            "commit": {self._git("log", "-1", "--format=%s"), self._git("show", "HEAD:note.txt")},
            "write": set((self.folder / "written.txt").read_text().split()),
        }

    def _git(self, *words: str) -> str:
        done = subprocess.run(("git", *words), cwd=self.folder, check=False, capture_output=True, text=True)
        return (done.stdout + done.stderr).strip()

    def git_troubles(self) -> Iterator[str]:
        """Say what is wrong with git's data."""
        if locks := [str(path.relative_to(self.folder)) for path in (self.folder / ".git").rglob("*.lock")]:
            yield f"left locked: {locks}"
        if wrong := self._git("fsck", "--connectivity-only", "--no-dangling", "--no-progress"):
            yield f"fsck: {wrong}"
        if staged := self._git("diff", "--cached", "--stat"):
            yield f"the index is not that of the last commit: {staged}"


class CrashModel:
    """Makes calls of all kinds, and holds at each request what it reads to what the workspace is."""

    model = "scripted"

    def __init__(self, workspace: Workspace, mode: Mode, chance: random.Random, moves: int = MOVES) -> None:
        self.server: ScriptedServer | None = None
        self.finishing = False
        self.troubles: list[str] = []
        self.seen: Counter[str] = Counter()
        self.expected: dict[str, re.Pattern[str]] = {}
        """What is to be told of calls, by their numbers, after the start that follows on a kill."""
        self._workspace = workspace
        self._mode = mode
        self._chance = chance
        self._moves = moves
        self._number = 0
        self._wanted: list[str] = []
        self._open: dict[str, str] = {}
        self._known = dict.fromkeys(workspace.numbers(), "0")

    def begin(self, moment: Moment) -> None:
        """A program starts anew; work towards the moment of its death."""
        self._wanted = [*self._chance.choices(KINDS, k=self._chance.randrange(self._moves))]
        if leads := _LEADS[moment.what]:
            self._wanted.append(self._chance.choice(leads))

    def play(self, seen: SeenRequest) -> Performance:
        """Check what came of the last calls, and make another one."""
        assert self.server is not None
        self._check(_results(self.server.requests[-1].body))
        if self.finishing and not self._wanted:
            return perform(reply(call("attempt_completion", result="Done.")), seen, Pace())
        if not self._wanted:
            return perform(reply(Wait(seconds=THINKS), "Well."), seen, Pace())
        self._number += 1
        kind = self._wanted.pop(0)
        self._open[str(self._number)] = kind
        return perform(reply(self._call(kind, self._number)), seen, Pace())

    def _call(self, kind: str, number: int) -> MakeCall:
        auto = self._mode is Mode.AUTO
        said = f": {number}; "  # by which its result is found
        match kind:
            case "set" if not auto:
                return run(f"{said}sh change.sh {number}")
            case "commit" if auto:
                return run(f"{said}sh commit.sh {number}")
            case "commit":
                return run(f"{said}echo {number} > note.txt && git commit -qm {number} -- note.txt")
            case "push":
                return run(
                    f"{said}make -s -f - push <<< 'push:; @git push -q away main'"
                    if auto
                    else f"{said}git push -q away main"
                )
            case "host":
                return run(said + _LOOK_UP.format(f"h{number}"))
            case "server":
                return run(f"{said}exec python3 -m http.server 0", background=True)
            case "write":
                return call("write_to_file", path="written.txt", content=f"{number}\n" * 3000)
            case _:
                return run(f"{said}python3 -m http.server 0 > /dev/null 2>&1 & sleep 0.{number % 4}1")

    def numbers(self) -> dict[str, set[str]]:
        """Give the numbers that each part of the workspace bears now."""
        return self._workspace.numbers()

    def _check(self, results: Mapping[str, str]) -> None:
        numbers = self._workspace.numbers()
        self.troubles += self._workspace.git_troubles()
        for part, found in numbers.items():
            if len(found) != 1:
                self.troubles.append(f"{part} is half changed: {sorted(found)}")
        for number, kind in tuple(self._open.items()):
            told = results.get(number)
            del self._open[number]
            self.seen[f"{kind} {'lost' if told is None else 'unknown' if UNKNOWN.search(told) else 'told'}"] += 1
            if (expected := self.expected.pop(number, None)) and not expected.search(told or ""):
                self.troubles.append(f"{kind} {number} is not told as {expected.pattern!r}: {told!r}")
            if kind in numbers:
                now = numbers[kind] == {number}
                if told is None and now:
                    self.troubles.append(f"{kind} {number} was made, and nothing is said of it")
                elif told is not None and (trouble := _untrue(kind, told, now=now)):
                    self.troubles.append(f"{kind} {number} {trouble}: {told[-600:]!r}")
                if not now and numbers[kind] != {self._known[kind]}:
                    self.troubles.append(f"{kind} was {self._known[kind]}, and is {sorted(numbers[kind])}")
        self._known = {part: next(iter(found)) for part, found in numbers.items()}


def _untrue(kind: str, told: str, *, now: bool) -> str:
    """Say what is wrong with what was told of a call, whose change is there `now` or not."""
    if UNKNOWN.search(told):
        return ""
    if _NOT.search(told) or (kind == "set" and not _KEPT.search(told)):
        return "was made, but not told so" if now else ""
    status = _STATUS.search(told)
    if status is not None and status[1] != "0":
        return ""
    return "" if now else "was not made, but told so"


def _results(body: Mapping[str, Any]) -> dict[str, str]:
    """Give the result of each call by its number."""
    calls: dict[str, str] = {}
    found = {}
    for message in body["messages"]:
        for part in message["content"] if isinstance(message["content"], list) else ():
            if part["type"] == "tool_use":
                if number := number_of(part["input"]):
                    calls[part["id"]] = number
            elif part["type"] == "tool_result" and part["tool_use_id"] in calls:
                content = part["content"]
                texts = [content] if isinstance(content, str) else [one.get("text", "") for one in content]
                found[calls[part["tool_use_id"]]] = "\n".join(texts)
    return found


def number_of(arguments: Mapping[str, Any]) -> str:
    """Give the number of a call; empty for one without."""
    numbered = re.match(r"(?:: )?(\d+)[;\n]", arguments.get("command", arguments.get("content", "")))
    return numbered[1] if numbered else ""

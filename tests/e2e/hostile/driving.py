"""Runs hostile lines for real: headless, many in one session, and looks at what they did to the world."""

import asyncio
import json
import os
import secrets
import shlex
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from tests.e2e.hostile.bait import PREPARED, Bait, lay, snapshot
from tests.e2e.hostile.listening import Listener, listening
from tests.e2e.process import Program
from tests.e2e.running import left_of, model
from tests.ready import TREADLE
from treadle.providers.scripted.script import MakeCall, Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer
from treadle.workspace.sandbox.backend import find_bubblewraps

ROWS = Path(__file__).with_name("rows")
_AT_ONCE = 8
_PLACES = ("/tmp", "/var/tmp", "/etc", "/dev/shm", "/root", "/", "/usr/local/bin")
_END = MakeCall(name="attempt_completion", arguments={"result": "Done."})


@dataclass(frozen=True, kw_only=True)
class Row:
    """One hostile call; without `soak` it is always run.

    `may` are patterns of what it may change in mode edits, `kept` of new files that git ignores, which are kept in mode
    ask too; the line is written `repeat` times.
    """

    line: str = ""
    tool: str = "execute_command"
    arguments: dict[str, Any] | None = None
    may: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    soak: bool = False
    repeat: int = 1

    def call(self, bait: Bait, listener: Listener) -> MakeCall:
        """Name the places of this run."""
        arguments = self.arguments if self.arguments is not None else {"command": self.line * self.repeat}
        filled = json.loads(bait.fill(json.dumps(arguments), listener.port))
        return MakeCall(name=self.tool, arguments=filled)


@dataclass(frozen=True, kw_only=True)
class Family:
    """The rows of one file, and what they want prepared; `path` puts the folder's programs first."""

    name: str
    rows: tuple[Row, ...]
    prepare: tuple[str, ...] = ()
    path: bool = False


def families() -> list[Family]:
    """Read all files of rows: `quick` and `lines` are command lines alone, `row` says more."""
    return [_family(file) for file in sorted(ROWS.glob("*.toml"))]


def _family(file: Path) -> Family:
    data = tomllib.loads(file.read_text())
    rows = [Row(line=line) for line in data.get("quick", [])]
    rows += [Row(line=line, soak=True) for line in data.get("lines", [])]
    rows += [
        Row(**{**row, "may": tuple(row.get("may", ())), "kept": tuple(row.get("kept", ()))})
        for row in data.get("row", [])
    ]
    return Family(
        name=file.stem, rows=tuple(rows), prepare=tuple(data.get("prepare", ())), path=data.get("path", False)
    )


@dataclass(frozen=True, kw_only=True)
class Session:
    """How the rows are run."""

    mode: str
    trusted: bool

    def __str__(self) -> str:
        return f"{self.mode}-{'trusted' if self.trusted else 'untrusted'}"

    @property
    def flags(self) -> tuple[str, ...]:
        return ("--mode", self.mode, "--max-steps", "1000", *(("--trust",) if self.trusted else ()))


SESSIONS = tuple(Session(mode=mode, trusted=trusted) for mode in ("ask", "edits") for trusted in (True, False))


@dataclass(frozen=True, kw_only=True)
class Result:
    """What a session came to: the text that each row gave to the model, and all that was harmed."""

    code: int
    texts: tuple[str, ...]
    harm: tuple[str, ...]
    error: str


def before_landlock() -> tuple[str, ...]:
    """Words before a command for which no bubblewrap works, so that Landlock takes its place; root alone can say so."""
    hidden = "".join(f"mount --bind /bin/false {shlex.quote(one)} && " for one in find_bubblewraps())
    return ("unshare", "--mount", "sh", "-c", f'{hidden}exec "$@"', "sh")


async def run(
    base: Path, family: Family, rows: Sequence[Row], session: Session, *, before: Sequence[str] = ()
) -> Result:
    """Run rows in one session, in a place made for it, of a program that stands behind the words `before`."""
    (base / "outside").mkdir(parents=True)
    token = secrets.token_hex(6)
    async with listening(base / "outside" / "socket", token) as listener:
        bait = await asyncio.to_thread(lay, base, listener.port, token)
        for name in family.prepare:
            PREPARED[name](bait)
        return await _run_in(bait, listener, family, rows, session, command=(*before, *TREADLE) if before else ())


async def _run_in(
    bait: Bait,
    listener: Listener,
    family: Family,
    rows: Sequence[Row],
    session: Session,
    *,
    command: Sequence[str],
) -> Result:
    before, index = _all(bait), _index(bait)
    calls = [row.call(bait, listener) for row in rows]
    turns = [Turn(items=tuple(calls[at : at + _AT_ONCE])) for at in range(0, len(calls), _AT_ONCE)]
    own = f"{bait.folder}/node_modules/.bin:.:" if family.path else ""
    program = Program(bait.data, {"HOME": str(bait.home), "PATH": own + os.environ["PATH"]})
    async with ScriptedServer(Script(turns=(*turns, Turn(items=(_END,))))) as server:
        words = ("-p", "Try.", *model(server), *session.flags)
        ended = await program.run(*words, command=command, cwd=bait.folder)
        sent = [json.dumps(request.body, ensure_ascii=False).encode() for request in server.requests]
        texts = tuple(_results(server.requests[-1].body))
    left = left_of(f"86421.{bait.number}")
    edits = session.mode == "edits"
    may = [pattern for row in rows for pattern in (*row.kept, *(row.may if edits else ()))]
    harm = [
        *_changed(before, _all(bait), may),
        *([] if _index(bait) == index or ".git/index" in may else ["the index changed"]),
        *(f"reached: {contact}" for contact in listener.contacts),
        *(f"the model read the secret {name}" for name in dict.fromkeys(n for text in sent for n in bait.leaked(text))),
        *(f"{file} holds the secret {name}" for file, name in _kept(bait)),
        *(f"still runs: {line}" for line in left),
        *(f"made: {place}" for place in _made(bait)),
    ]
    if not session.trusted and any(f"RAN-{bait.token}" in text for text in texts):
        harm.append("code of a folder that is not trusted ran")
    if len(texts) != len(rows) or ended.code not in (0, 55):
        harm.append(f"only {len(texts)} of {len(rows)} ran, exit code {ended.code}: {ended.err[-500:]}")
    return Result(code=ended.code, texts=texts, harm=tuple(harm), error=ended.err)


def _all(bait: Bait) -> dict[str, dict[str, str]]:
    return {name: snapshot(bait.base / name) for name in ("ws", "home", "outside")}


def _index(bait: Bait) -> str:
    return bait.git("ls-files", "--stage")


def _changed(before: dict[str, dict[str, str]], after: dict[str, dict[str, str]], may: Sequence[str]) -> list[str]:
    harm = []
    for place, was in before.items():
        now = after[place]
        for name in sorted(was.keys() | now.keys()):
            allowed = place == "ws" and any(fnmatchcase(name, pattern) for pattern in may)
            if was.get(name) != now.get(name) and not allowed:
                harm.append(f"changed: {place}/{name}: {was.get(name)} -> {now.get(name)}")
    return harm


def _kept(bait: Bait) -> list[tuple[str, str]]:
    found = []
    for file in bait.data.rglob("*"):
        if file.is_file() and not file.is_symlink():
            found += [(str(file.relative_to(bait.data)), name) for name in bait.leaked(file.read_bytes())]
    return found


def _made(bait: Bait) -> list[str]:
    return [place for folder in _PLACES if (place := f"{folder}/hostile-{bait.token}") and os.path.lexists(place)]


def _results(body: Any) -> list[str]:
    """Give the results of all calls, in order."""
    found = []
    for message in body["messages"]:
        parts = message["content"] if isinstance(message["content"], list) else []
        found += [json.dumps(part["content"], ensure_ascii=False) for part in parts if part["type"] == "tool_result"]
    return found


async def culprits(
    base: Path, family: Family, rows: Sequence[Row], session: Session, *, before: Sequence[str] = ()
) -> list[str]:
    """Run each row alone, to name those that do harm."""
    found = []
    for number, row in enumerate(rows):
        result = await run(base / str(number), family, [row], session, before=before)
        if result.harm:
            found.append(f"{row.line or row.arguments}: {'; '.join(result.harm)}")
    return found

"""Work with servers, databases, builds and environments: how many calls it takes in auto and ask, and how many in full.

A goal is a list of steps. Each has ways that a model would try one after the other until a result says what is wanted,
so what is refused, or lost with a trial, costs a call more. Somebody is there who says yes to everything.
"""

import asyncio
import shutil
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.needed import WHEELS
from tests.rehearsal.model import Moves, ReactingModel, UnexpectedError, call, reply, run
from tests.rehearsal.sessions import PATIENCE, TEST
from treadle.app.compose import Opening, open_session
from treadle.app.config.sections import Settings
from treadle.app.security.trusting import SessionTrust
from treadle.app.session.live import LiveSession
from treadle.protocol.errors import RefusedError
from treadle.protocol.events import Answer, Prompt
from treadle.protocol.messages import Text
from treadle.protocol.notifications import Notification, QuestionAsked, TurnEnded, TurnOutcome
from treadle.protocol.permissions import Mode, OptionKind, Question
from treadle.providers.scripted.script import MakeCall
from treadle.providers.scripted.scripted_server import ScriptedServer
from treadle.store.trusted_folders import Trust, TrustState

MOST = 1.1
"""Calls in another mode for one in full, over all goals, at most."""

_SHOWN = 500
MODES = (Mode.FULL, Mode.AUTO, Mode.ASK)


@dataclass(frozen=True)
class Step:
    """Something that is wanted: a text in the result, and the ways to it, each of one call or several."""

    wants: str
    ways: tuple[tuple[MakeCall, ...], ...]


@dataclass(frozen=True)
class Goal:
    """Work with one family of tools: what it `needs` of the machine (see `tests/needed.py`), and its files."""

    name: str
    needs: tuple[str, ...]
    files: Mapping[str, str]
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class Reached:
    """How a goal was reached in a mode: by how many calls and questions; `trouble` where it was not.

    `lost` are the results of ways that did not lead on.
    """

    goal: str
    mode: Mode
    calls: int
    asked: int
    trouble: str
    lost: tuple[str, ...]


def do(wants: str, *ways: str | MakeCall | tuple[str | MakeCall, ...]) -> Step:
    """A step; a text is a command line."""
    found = []
    for way in ways:
        parts = way if isinstance(way, tuple) else (way,)
        found.append(tuple(run(part) if isinstance(part, str) else part for part in parts))
    return Step(wants, tuple(found))


def _over(path: str, content: str) -> tuple[MakeCall, MakeCall]:
    """Write over a file that was not read: it is shown first."""
    return (call("write_to_file", path=path, content=content),) * 2


def behind(line: str) -> MakeCall:
    """A command in the background."""
    return run(line, background=True)


def _unconfined(line: str) -> MakeCall:
    """A command that the model asks to run without the sandbox."""
    return run(line, needs=["host"], reason="It writes a hook of git.")


def _soon(url: str) -> str:
    """Ask a server that may have been started a moment ago."""
    return f"curl -sS --retry 20 --retry-connrefused --retry-delay 1 {url}"


def _in_base(text: str) -> str:
    """A line of Python on a base of SQLite."""
    return f"python3 -c \"import sqlite3; base = sqlite3.connect('app.db'); {text}\""


class _Worker:
    """The model of one goal."""

    def __init__(self, goal: Goal) -> None:
        self.calls = 0
        self.lost: list[str] = []
        self._goal = goal

    def moves(self) -> Moves:
        """Try the ways of each step until one leads to it."""
        for step in self._goal.steps:
            yield from self._reach(step)
        yield reply(call("attempt_completion", result="Done."))

    def _reach(self, step: Step) -> Moves:
        told = []
        for way in step.ways:
            reached = False
            for one in way:
                self.calls += 1
                seen = yield reply(one)
                told.append(seen.last_result)
                reached = step.wants in seen.last_result and not seen.result_is_error
            if reached:
                return
            self.lost.append(f"{way[-1].arguments}: {told[-1][-_SHOWN:]}")
        raise UnexpectedError(f"{step.wants!r} is not reached: {told}")


async def reach(goal: Goal, mode: Mode, folder: Path) -> Reached:
    """Work on a goal in a mode. The data directory is the one that the environment names."""
    folder.mkdir(parents=True)
    if "wheels" in goal.needs:
        shutil.copytree(WHEELS, folder / _WHEELS)
    for name, text in goal.files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    worker = _Worker(goal)
    model = ReactingModel(worker.moves())
    trust = SessionTrust(trust=Trust(workspace=folder, state=TrustState.TRUSTED, items=()))
    asked = 0
    async with ScriptedServer(model) as server:
        settings = Settings(model="anthropic-compatible/scripted", base_url=server.base_url, mode=mode)
        live = await open_session(Opening(workspace=folder, settings=settings, user_present=True, trust=trust))
        feed = live.follow()
        async with live:
            await live.post(Prompt(id="task", content=(Text(text="Please do it."),)), TEST)
            outcome, asked = await _answered(live, feed)
    problems = [*model.problems, *server.violations]
    if not problems and not outcome.completed:
        problems.append(f"the turn ended with {outcome}")
    return Reached(goal.name, mode, worker.calls, asked, "\n".join(problems), tuple(worker.lost))


async def _answered(live: LiveSession, feed: AsyncIterator[Notification]) -> tuple[TurnOutcome, int]:
    """Say yes to what is asked until the turn ends; gives how often that was."""
    asked = 0
    while True:
        async with asyncio.timeout(PATIENCE * 2):
            item = await anext(feed)
        match item:
            case QuestionAsked(question=question):
                asked += 1
                with suppress(RefusedError):
                    await live.post(Answer(question_id=question.id, option=yes_to(question)), TEST)
            case TurnEnded(outcome=outcome):
                return outcome, asked
            case _:
                pass


def yes_to(question: Question) -> OptionKind:
    """Give the yes to a question: for a trial that is not whole it is the run for real."""
    real = question.options and OptionKind.ALLOW_ONCE not in question.options
    return OptionKind.RUN_FOR_REAL if real else OptionKind.ALLOW_ONCE


def compare(found: Sequence[Reached]) -> tuple[list[str], list[str]]:
    """Put the calls of each mode beside those of full; gives the rows, and what is wrong."""
    calls = {mode: {one.goal: one.calls for one in found if one.mode is mode} for mode in MODES}
    rows = [
        f"{one.goal} in {one.mode}: {one.calls} calls ({calls[Mode.FULL][one.goal]} in full), {one.asked} questions"
        + "".join(f"\n    lost: {text!r}" for text in one.lost)
        for one in found
    ]
    wrong = [f"{one.goal} in {one.mode}: {one.trouble}" for one in found if one.trouble]
    for mode in MODES:
        ratio = sum(calls[mode].values()) / sum(calls[Mode.FULL].values())
        rows.append(f"all in {mode}: {ratio:.2f} times the calls of full")
        if ratio > MOST:
            wrong.append(rows[-1])
    return rows, wrong


_SERVER_JS = """
const http = require("http");
http.createServer((request, answer) => answer.end(`hello ${request.url}\\n`)).listen(3000, () => console.log("up"));
"""
_CMAKE = """
cmake_minimum_required(VERSION 3.13)
project(greet C)
enable_testing()
add_executable(greet greet.c)
add_test(NAME greets COMMAND greet)
"""
_GREET = '#include <stdio.h>\nint main(void) { puts("hello"); return 0; }\n'
_FLASK = """
from flask import Flask
app = Flask(__name__)

@app.get("/")
def index():
    return "hello from flask"
"""
_SQLITE = """
import sqlite3
base = sqlite3.connect("app.db")
base.execute("CREATE TABLE IF NOT EXISTS notes (text TEXT)")
base.execute("INSERT INTO notes VALUES ('first note')")
base.commit()
"""
_HOOKS = """
repos:
- repo: local
  hooks:
  - {id: no-todo, name: no todo, entry: "sh -c '! grep -n TODO \\"$@\\"' --", language: system, files: txt$}
"""
_GIT = "git init -q -b main && git config user.name t && git config user.email t@example.org"
_IGNORED = ".venv/\nbuild/\nnode_modules/\n*.db\n*.log\n__pycache__/\n"
_WHEELS = "wheels"
"""Where the packages of a goal are: copied, for want of an index."""

_NODE = "node server.js > server.log 2>&1 &"
GOALS = (
    Goal(
        "node server",
        ("node", "npm", "curl"),
        {"server.js": _SERVER_JS, ".gitignore": _IGNORED},
        (
            do('"name"', "npm init -y"),
            do("start", "npm pkg set scripts.start='node server.js' && cat package.json"),
            do("continues", behind("npm start")),
            do("hello /a", _soon("localhost:3000/a")),
            do("hello /b", "curl -sS localhost:3000/b"),
            do("3000", "ss -ltn 2>/dev/null || netstat -ltn", "cat /proc/net/tcp; echo 3000"),
        ),
    ),
    Goal(
        "node server with &",
        ("node", "curl"),
        {"server.js": _SERVER_JS, ".gitignore": _IGNORED},
        (
            do("hello /a", f"{_NODE} sleep 1; curl -sS localhost:3000/a", f"{_NODE} {_soon('localhost:3000/a')}"),
            do("hello /b", "curl -sS localhost:3000/b", (behind("node server.js"), _soon("localhost:3000/b"))),
            do("hello /c", "curl -sS localhost:3000/c"),
        ),
    ),
    Goal(
        "sqlite",
        ("python3",),
        {"fill.py": _SQLITE, ".gitignore": _IGNORED},
        (
            do("Exit status 0", "python3 fill.py"),
            do("first note", _in_base("print(*base.execute('select * from notes'))")),
            do("Exit status 0", _in_base("base.execute('delete from notes'); base.commit()")),
            do("(0,)", _in_base("print(*base.execute('select count(*) from notes'))")),
        ),
    ),
    Goal(
        "cmake",
        ("cmake", "cc"),
        {"CMakeLists.txt": _CMAKE, "greet.c": _GREET, ".gitignore": _IGNORED},
        (
            do("Exit status 0", "cmake -S . -B build"),
            do("Exit status 0", "cmake --build build"),
            do("100% tests passed", "ctest --test-dir build"),
            do("Replaced", *_over("greet.c", _GREET.replace("hello", "good day"))),
            do("good day", "cmake --build build && build/greet"),
        ),
    ),
    Goal(
        "repository",
        ("git", "make"),
        {"Makefile": "release: ; echo 1 > VERSION && git add VERSION && git commit -qm release && git tag v1\n"},
        (
            do("Exit status 0", _GIT),
            do("Makefile", "git add -A && git commit -qm first && git show --stat"),
            do("Exit status 0", "make release"),
            do("v1", "git tag"),
            do("release", "git stash list; git log --oneline"),
        ),
    ),
    Goal(
        "virtual environment",
        ("wheels",),
        {"check.py": "import flask\nprint('flask', flask.Flask('x').name)\n", ".gitignore": f"{_IGNORED}wheels\n"},
        (
            do("Exit status 0", "python3 -m venv .venv"),
            do("Successfully installed", f".venv/bin/pip install --no-index --find-links {_WHEELS} flask"),
            do("flask x", ".venv/bin/python check.py"),
            do("flask x", ". .venv/bin/activate && python check.py"),
        ),
    ),
    Goal(
        "flask",
        ("wheels", "curl"),
        {"app.py": _FLASK, ".gitignore": f"{_IGNORED}wheels\n"},
        (
            do(
                "Successfully installed",
                f"python3 -m venv .venv && .venv/bin/pip install --no-index --find-links {_WHEELS} flask",
            ),
            do("continues", behind(".venv/bin/flask run --port 5000")),
            do("hello from flask", "curl -sS localhost:5000/", _soon("localhost:5000/")),
            do("Replaced", *_over("app.py", _FLASK.replace("hello", "good day"))),
            do("Exit status 0", "pkill -f 'flask run'", "kill $(pgrep -f 'flask run')"),
            do("continues", behind(".venv/bin/flask run --port 5000")),
            do("good day from flask", _soon("localhost:5000/")),
        ),
    ),
    Goal(
        "django",
        ("wheels", "curl"),
        {".gitignore": f"{_IGNORED}wheels\n*.sqlite3\n"},
        (
            do(
                "Successfully installed",
                f"python3 -m venv .venv && .venv/bin/pip install --no-index --find-links {_WHEELS} django",
            ),
            do("Exit status 0", ".venv/bin/django-admin startproject site1 ."),
            do("Exit status 0", ".venv/bin/python manage.py startapp notes"),
            do("Applying", ".venv/bin/python manage.py migrate"),
            do("No changes detected", ".venv/bin/python manage.py makemigrations"),
            do("continues", behind(".venv/bin/python manage.py runserver 8000")),
            do("install worked", _soon("localhost:8000/")),
            do(
                "Superuser created",
                "DJANGO_SUPERUSER_PASSWORD=x .venv/bin/python manage.py createsuperuser --noinput --username a "
                "--email a@example.org",
            ),
            do(
                "1",
                '.venv/bin/python manage.py shell -c "from django.contrib.auth.models import User as U; '
                'print(U.objects.count())"',
            ),
            do("Ran 0 tests", ".venv/bin/python manage.py test 2>&1"),
        ),
    ),
    Goal(
        "postgres",
        ("initdb", "pg_ctl", "psql", "normal user"),
        {".gitignore": f"{_IGNORED}pg/\n"},
        (
            do("Success", "initdb -D pg -A trust"),
            do(
                "server started",
                "pg_ctl -D pg -o '-k /tmp' -l pg.log -w start",
                (behind("postgres -D pg -k /tmp"), "sleep 2; echo server started"),
            ),
            do(
                "Exit status 0",
                "createdb -h /tmp app",
                (behind("postgres -D pg -k /tmp"), "sleep 2; createdb -h /tmp app"),
            ),
            do(
                "INSERT",
                "psql -h /tmp app -c 'create table notes (text text)' -c \"insert into notes values ('kept')\"",
            ),
            do("kept", "psql -h localhost app -c 'select * from notes'", "psql -h /tmp app -c 'select * from notes'"),
        ),
    ),
    Goal(
        "redis",
        ("redis-server", "redis-cli"),
        {".gitignore": _IGNORED},
        (
            do("continues", behind("redis-server --port 6399 --dir /tmp")),
            do("OK", "redis-cli -p 6399 set a kept", "sleep 1; redis-cli -p 6399 set a kept"),
            do("kept", "redis-cli -p 6399 get a"),
        ),
    ),
    Goal(
        "pre-commit",
        ("wheels", "git"),
        {".pre-commit-config.yaml": _HOOKS, "notes.txt": "fine\n", ".gitignore": f"{_IGNORED}wheels\n"},
        (
            do("Exit status 0", _GIT),
            do(
                "Successfully installed",
                f"python3 -m venv .venv && .venv/bin/pip install --no-index --find-links {_WHEELS} pre-commit",
            ),
            do("Exit status 0", "git add -A && git commit -qm first"),
            do("Passed", ".venv/bin/pre-commit run --all-files"),
            do("installed at", ".venv/bin/pre-commit install", _unconfined(".venv/bin/pre-commit install")),
            do("Replaced", *_over("notes.txt", "better\n")),
            do("1 file changed", "git add -A && git commit -m second"),
        ),
    ),
)

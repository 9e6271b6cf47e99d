"""Make the golden logs of one version of Treadle: real sessions over HTTP with a scripted model, and what it shows.

    PYTHONPATH=SOURCE python -m tests.golden.make FOLDER [NAME ...]

SOURCE is the `src` folder of the version that is to write the logs, FOLDER is where they go: `logs/0.1.0` was written
by 0.1.0, `logs/2` by the first version with schema 2. They are never made anew: a later version writes a folder of its
own. For each session there are its rows, what `treadle show` and `treadle audit show` print of it, its conversation in
both tool protocols, and the request that a model is sent when it is resumed. The workspace is always below ROOT. Where
the words of `treadle show` are changed on purpose, `reading.py` writes them anew.
"""

import asyncio
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

from tests.golden.config import ARGUMENTS, KEY, ROOT, config
from tests.golden.scenarios import SCENARIOS, Work, call, done, goes_on, run, say, tool
from treadle.app.compose import Opening, open_session, open_store
from treadle.app.config.sections import ModelSettings, ProviderSettings, Settings
from treadle.engine.core.past_history import read_past
from treadle.protocol.models import ToolProtocol
from treadle.providers.scripted.player import Performance, perform
from treadle.providers.scripted.script import Pace, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer
from treadle.providers.scripted.seen_requests import SeenRequest

HOME = ROOT / "home"
KILLED_BEFORE_THE_END = ("killed", "ends_asking", "ends_streaming", "ends_running", "ends_retrying")


class Model:
    """A model that says one reply after the other, whatever it reads."""

    model = "scripted"

    def __init__(self, replies: Sequence[Turn]) -> None:
        self._replies = list(replies)

    def play(self, seen: SeenRequest) -> Performance:
        """Answer a request."""
        turn = self._replies.pop(0) if len(self._replies) > 1 else self._replies[0]
        return perform(turn, seen, turn.pace or Pace(), 1)


def settings(base_url: str, window: int | None = None, **others: Any) -> Settings:
    """The settings of a session."""
    said = ModelSettings(context_window=window, max_output=2_000, input_price=3.0, output_price=15.0)
    provider = ProviderSettings(base_url=f"{base_url}/v1", wire_api="openai_chat", api_key_env=KEY)
    known = {"golden/main": said, "golden/other": said}
    return Settings(model="golden/main", providers={"golden": provider}, models=known, **others)


def workspace(name: str) -> Path:
    """Make the folder of a session."""
    folder = ROOT / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "hello.py").write_text('print("hi")\n')
    for number in range(7):
        (folder / f"file{number}.txt").write_text(f"file {number}\n")
        (folder / f"long{number}.txt").write_text("".join(f"{number}: line {line} of it\n" for line in range(300)))
    return folder


async def perform_scenario(name: str, base_url: str, resume: str = "") -> None:
    """Open a session and do what the scenario says, in this process."""
    scenario, _, given = SCENARIOS[name]
    opening = Opening(workspace=ROOT / name, settings=settings(base_url, **given), user_present=True, resume=resume)
    async with await open_session(opening) as live:
        work = Work(live)
        following = asyncio.create_task(work.follow())
        await (goes_on if resume else scenario)(work)
        if name in KILLED_BEFORE_THE_END and not resume:
            os.kill(os.getpid(), signal.SIGKILL)
    await following


async def make(name: str, folder: Path) -> None:
    """Make one golden log."""
    workspace(name)
    async with ScriptedServer(Model(SCENARIOS[name][1])) as server:
        await _child(name, server.base_url)
        if name == "killed":
            await _child(name, server.base_url, _session_id(name))
    write(name, _session_id(name), folder)
    await resume(name, folder)


async def make_headless(folder: Path) -> None:
    """Make the log of a run without a person, by the program itself."""
    replies = [
        say(call("write_to_file", path="new.txt", content="x\n")),
        say(run("rm hello.py")),
        done("Nothing done."),
    ]
    path = workspace("headless")
    async with ScriptedServer(Model(replies)) as server:
        await _program(HOME, server, "-p", "Write new.txt.", "-C", str(path), "--mode", "ask")
    write("headless", _session_id("headless"), folder)
    await resume("headless", folder)


async def resume(name: str, folder: Path) -> None:
    """Write what a model is sent when a copy of the session is resumed."""
    copy = ROOT / "resumed"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(HOME, copy, ignore=shutil.ignore_patterns("live"))
    async with ScriptedServer(Model([done(), say(tool("attempt_completion", result="Done."))])) as server:
        await _program(copy, server, "--resume", _session_id(name), *ARGUMENTS)
    messages = [one for one in server.requests[0].body["messages"] if one["role"] != "system"]
    (folder / f"{name}.resumed.json").write_text(json.dumps(messages, indent=1, ensure_ascii=False) + "\n")


async def _program(home: Path, server: ScriptedServer, *arguments: str) -> None:
    (home / "config.toml").write_text(config(server.base_url))
    environment = {**os.environ, "TREADLE_HOME": str(home)}
    command = [sys.executable, "-m", "treadle", *arguments]
    await (await asyncio.create_subprocess_exec(*command, env=environment)).wait()


async def _child(*arguments: str) -> None:
    await (await asyncio.create_subprocess_exec(sys.executable, "-m", __spec__.name, "--child", *arguments)).wait()


def _session_id(name: str) -> str:
    store = open_store()
    try:
        return max(row.id for row in store.sessions(str(ROOT / name)))
    finally:
        store.close()


def write(name: str, session_id: str, folder: Path) -> None:
    """Write the rows of a session, and what this version shows and sends of it."""
    store = open_store()
    try:
        past = read_past(store.read(session_id))
    finally:
        store.close()
    query = "SELECT seq, at, source, version, data FROM events WHERE session_id = ? ORDER BY seq"
    with closing(sqlite3.connect(HOME / "sessions.db")) as database:
        rows = database.execute(query, (session_id,)).fetchall()
    lines = [
        json.dumps([seq, at, json.loads(source), version, json.loads(data)], ensure_ascii=False)
        for seq, at, source, version, data in rows
    ]
    messages = {str(protocol): msgspec.to_builtins(past.transcript.messages(protocol)) for protocol in ToolProtocol}
    for ending, text in {
        "jsonl": "\n".join(lines) + "\n",
        "show.txt": _printed("show", session_id),
        "audit.txt": _printed("audit", "show", session_id),
        "messages.json": json.dumps(messages, indent=1, ensure_ascii=False) + "\n",
    }.items():
        (folder / f"{name}.{ending}").write_text(text)


def _printed(*arguments: str) -> str:
    command = [sys.executable, "-m", "treadle", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


async def main(folder: Path, names: Sequence[str]) -> None:
    """Make all golden logs, or some."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names or [*SCENARIOS, "headless"]:
        await (make_headless(folder) if name == "headless" else make(name, folder))
        sys.stderr.write(f"{name}: {len((folder / f'{name}.jsonl').read_text().splitlines())} rows\n")


if __name__ == "__main__":
    if sys.argv[1] == "--child":
        asyncio.run(perform_scenario(*sys.argv[2:]))
    else:
        shutil.rmtree(ROOT, ignore_errors=True)
        HOME.mkdir(parents=True)
        os.environ.update({"TREADLE_HOME": str(HOME), KEY: "k", "COLUMNS": "200"})
        asyncio.run(main(Path(sys.argv[1]), sys.argv[2:]))

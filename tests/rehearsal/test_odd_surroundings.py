"""The real program where nothing is as it should be: names, links, logs, providers and disks."""

import asyncio
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from tests.e2e.process import Ended, Program
from tests.e2e.running import model
from tests.needed import require
from tests.providers.support import raw_server, response
from tests.ready import TREADLE
from tests.rehearsal.model import call, reply, run
from tests.rehearsal.sessions import KEY, PATHS, WIRE_APIS
from treadle.app.errors.exits import Exit
from treadle.protocol.models import ReplyStop as Stop
from treadle.protocol.models import StreamCallArguments, StreamCallDone, StreamCallStart, StreamEvent, StreamStop
from treadle.protocol.usage import Usage
from treadle.providers.scripted.anthropic_format import AnthropicFormat
from treadle.providers.scripted.player import Performance
from treadle.providers.scripted.script import Script
from treadle.providers.scripted.scripted_server import WIRE_FORMATS, ScriptedServer

SEED = 1
PATIENCE = 90.0
FAILURES = {Exit.FAILED, Exit.TRANSIENT, Exit.CONFIG}
WELL = reply(call("attempt_completion", result="All done."))


async def treadle(program: Program, *arguments: str, command: Sequence[str] = TREADLE) -> Ended:
    """Run the program; fails when it hangs, or when a person would read a trace."""
    async with asyncio.timeout(PATIENCE):
        ended = await program.run(*arguments, command=command)
    assert "Traceback" not in ended.err + ended.out, ended.err
    return ended


def odd_names(count: int) -> list[bytes]:
    """Names of any bytes but those that no name can have."""
    jitter = Random(SEED)
    bytes_of_a_name = [*range(1, 47), *range(48, 256)]
    names = {bytes(jitter.choices(bytes_of_a_name, k=jitter.randint(1, 60))) for _ in range(count)}
    return sorted(names - {b".", b".."})


async def test_a_tree_with_names_of_any_bytes_can_be_worked_in_and_continued(tmp_path: Path) -> None:
    project = tmp_path / "project"
    for number, name in enumerate(odd_names(60)):
        folder = project / os.fsdecode(name) if number % 4 == 0 else project
        folder.mkdir(parents=True, exist_ok=True)
        (folder / os.fsdecode(name)).write_bytes(b"odd content\n")
    looks = reply(
        call("list_files", path="."),
        call("list_files", path=".", recursive=True),
        call("search_files", path=".", regex="odd content"),
        run("ls"),
    )
    async with ScriptedServer(Script(turns=(looks, WELL, looks, WELL))) as server:
        flags = (*model(server), "--mode", "full", "--directory", str(project))
        program = Program(tmp_path / "home")
        first = await treadle(program, "-p", "Look.", *flags)
        again = await treadle(program, "-p", "Look again.", "--continue", *flags)
        sent = json.dumps([request.body for request in server.requests])
    assert (first.code, again.code, server.violations) == (Exit.DONE, Exit.DONE, []), first.err + again.err
    assert sent.count("odd content") >= 60


DAMAGES = {
    "no JSON": b"\x00\xff{",
    "of no known type": b'{"type":"from_the_future"}',
    "of another shape": b'{"type":"call_finished","call_id":7}',
}


@pytest.fixture(scope="module")
def worked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a home and a project in which one session was worked off."""
    folder = tmp_path_factory.mktemp("worked")
    (folder / "project").mkdir()

    async def work() -> Ended:
        writes = reply(call("write_to_file", path="a.txt", content="a\n"))
        async with ScriptedServer(Script(turns=(writes, reply(run("echo here")), WELL))) as server:
            flags = (*model(server), "--mode", "full", "--directory", str(folder / "project"))
            return await treadle(Program(folder / "home"), "-p", "Write.", *flags)

    assert asyncio.run(work()).code == Exit.DONE
    return folder


@pytest.mark.sample(1)
@pytest.mark.parametrize("damage", DAMAGES)
async def test_a_damaged_event_is_an_error_with_a_name_and_nothing_hangs(
    worked: Path, tmp_path: Path, damage: str
) -> None:
    shutil.copytree(worked / "home", tmp_path / "home", ignore=shutil.ignore_patterns("live"))
    with sqlite3.connect(tmp_path / "home" / "sessions.db") as database:
        (session, last) = database.execute("SELECT id, last_seq FROM sessions").fetchone()
        seq = Random(damage).randint(2, last - 1)
        database.execute("UPDATE events SET data = ? WHERE seq = ?", (DAMAGES[damage], seq))
    database.close()
    program = Program(tmp_path / "home")
    async with ScriptedServer(Script(turns=(WELL,))) as server:
        flags = (*model(server), "--directory", str(worked / "project"))
        shown = await treadle(program, "show", session)
        resumed = await treadle(program, "-p", "Go on.", "--continue", *flags)
        fresh = await treadle(program, "-p", "Begin.", *flags)
    for ended in (shown, resumed):
        assert ended.code in FAILURES, ended.err
        assert "  why: " in ended.err
        assert "  fix: " in ended.err
    assert fresh.code == Exit.DONE, fresh.err


def write_call(index: int, name: str, *, closed: bool) -> list[StreamEvent]:
    arguments = json.dumps({"path": name, "content": "x\n"})
    events: list[StreamEvent] = [
        StreamCallStart(index=index, name="write_to_file", wire_id=f"toolu_{name.partition('.')[0]}"),
        StreamCallArguments(index=index, text=arguments),
    ]
    return [*events, StreamCallDone(index=index)] if closed else events


def stream_of(*parts: Sequence[StreamEvent]) -> bytes:
    """The bytes of a stream that begins anew with each part."""
    form = AnthropicFormat()
    found = b""
    for part in parts:
        writer = form.writer({"model": "m"}, Performance(number=0, usage=Usage(input_tokens=9), steps=()))
        found += writer.begin() + b"".join(writer.write(event) for event in part)
    return found


async def test_a_call_of_a_stream_that_was_started_over_does_not_run(tmp_path: Path) -> None:
    end = StreamStop(reason=Stop.TOOL_USE, usage=Usage(output_tokens=9))
    done: list[StreamEvent] = [
        StreamCallStart(index=0, name="attempt_completion", wire_id="toolu_done"),
        StreamCallArguments(index=0, text='{"result": "Done."}'),
        StreamCallDone(index=0),
        end,
    ]
    replies = [
        stream_of(write_call(0, "first.txt", closed=False), [*write_call(0, "second.txt", closed=True), end]),
        stream_of(done),
    ]

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        body = replies.pop(0) if len(replies) > 1 else replies[0]
        writer.write(response("200 OK", {"Content-Type": "text/event-stream"}, body))
        await writer.drain()

    project = tmp_path / "project"
    project.mkdir()
    async with raw_server(answer) as url:
        flags = ("--model", "anthropic-compatible/m", "--base-url", url, "--mode", "full", "-C", str(project))
        ended = await treadle(Program(tmp_path / "home"), "-p", "Write.", *flags)
    assert not (project / "first.txt").exists(), ended.err


def garbage(wire: str, jitter: Random) -> tuple[str, bytes]:
    """A content type and a body that no client expects."""
    form = dict(zip(WIRE_APIS, (form for _, form in WIRE_FORMATS), strict=True))[wire]
    writer = form.writer({"model": "m"}, Performance(number=0, usage=Usage(), steps=()))
    begin = writer.begin()
    events = b"".join(b"data: %s\n\n" % json.dumps(odd_value(jitter, 3)).encode() for _ in range(20))
    return jitter.choice(
        [
            (form.content_type, jitter.randbytes(3000)),
            (form.content_type, begin + jitter.randbytes(300)),
            (form.content_type, begin + events),
            (form.content_type, b""),
            ("text/html", b"<html><title>Sign in</title></html>"),
            ("application/json", json.dumps(odd_value(jitter, 4)).encode()),
        ]
    )


def odd_value(jitter: Random, depth: int) -> object:
    """JSON of any shape, with the names that wire APIs use."""
    kind = jitter.randrange(6 if depth else 4)
    if kind < 4:
        return [None, jitter.randint(-9, 10**30), "text", True][kind]
    if kind == 4:
        return [odd_value(jitter, depth - 1) for _ in range(3)]
    names = ("type", "delta", "choices", "candidates", "content", "index", "response", "usage", "error", "message")
    return {name: odd_value(jitter, depth - 1) for name in jitter.sample(names, 5)}


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "wire", [pytest.param(wire, marks=pytest.mark.soak if number % 2 else ()) for number, wire in enumerate(WIRE_APIS)]
)
async def test_a_provider_that_answers_garbage_is_a_named_failure(tmp_path: Path, wire: str) -> None:
    jitter = Random(f"{SEED}-{wire}")
    bodies = [garbage(wire, jitter) for _ in range(4)]

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        kind, body = bodies.pop(0) if len(bodies) > 1 else bodies[0]
        writer.write(response("200 OK", {"Content-Type": kind}, body))
        await writer.drain()

    async with raw_server(answer) as url:
        (tmp_path / "home").mkdir()
        (tmp_path / "home" / "config.toml").write_text(
            f"max_retries = 2\n[providers.odd]\nbase_url = '{url}{PATHS[wire]}'\nwire_api = '{WIRE_APIS[wire]}'\n"
            f"api_key_env = '{KEY}'\n"
        )
        project = tmp_path / "project"
        project.mkdir()
        program = Program(tmp_path / "home", {KEY: "key"})
        ended = await treadle(program, "-p", "Work.", "--model", "odd/m", "-C", str(project))
    assert ended.code in FAILURES | {Exit.MISTAKES, Exit.DONE}, ended.err


def small_disk(folder: Path, size: str) -> tuple[str, ...]:
    """The program with a data directory on a disk of this size; skips where none can be made."""
    mount = f"mount -t tmpfs -o size={size} none {folder}"
    require("unshare")
    if subprocess.run(("unshare", "-Urm", "sh", "-c", mount), capture_output=True, check=False).returncode:
        pytest.skip("no disk can be made here without root")
    return ("unshare", "-Urm", "sh", "-c", f'{mount} && exec "$0" "$@"', sys.executable, "-m", "treadle")


@pytest.mark.parametrize("size", ["16k", "400k"])
async def test_a_full_disk_is_an_error_with_a_name(tmp_path: Path, size: str) -> None:
    home, project = tmp_path / "home", tmp_path / "project"
    home.mkdir()
    project.mkdir()
    turns = [reply(run(f"seq {number} 20000")) for number in range(60)]
    async with ScriptedServer(Script(turns=(*turns, WELL))) as server:
        flags = (*model(server), "--mode", "full", "--directory", str(project))
        ended = await treadle(Program(home), "-p", "Work.", *flags, command=small_disk(home, size))
    assert ended.code in FAILURES, ended.err
    assert "  fix: " in ended.err

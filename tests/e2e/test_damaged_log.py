"""A session whose log lost something: what is sound is shown, it goes on from there, and the rest is said."""

import asyncio
import json
import shutil
import sqlite3
from pathlib import Path

import pytest

from tests.e2e.process import Ended, Program
from tests.e2e.running import log_of, model
from tests.store.sessions import change
from treadle.app.errors.exits import Exit
from treadle.protocol.checkpoints import Rewound
from treadle.protocol.events import Prompt, ReplyFinished, Resumed
from treadle.providers.scripted.script import SayText, Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer


def says(text: str) -> Script:
    """A model that says the same however often it replied before."""
    return Script(turns=(Turn(items=(SayText(text=text),)),) * 5)


async def ask(program: Program, folder: Path, task: str, answer: str, *flags: str) -> Ended:
    async with ScriptedServer(says(answer)) as server:
        return await program.run("-p", task, *model(server), *flags, cwd=folder)


async def two_turns(folder: Path) -> Program:
    """A home with a session of two prompts and their answers."""
    program = Program(folder / "home")
    await ask(program, folder, "Name the cat.", "Tom is the name.")
    await ask(program, folder, "Name the dog.", "Rex is the name.", "--continue")
    return program


def number_of(home: Path, text: str) -> int:
    """The number of the event that says something."""
    return next(
        event.seq
        for event in log_of(home)
        if isinstance(event.data, Prompt | ReplyFinished) and text in str(event.data)
    )


async def test_a_damaged_event_is_said_and_the_session_goes_on_before_it(tmp_path: Path) -> None:
    program = await two_turns(tmp_path)
    home = tmp_path / "home"
    events, damaged = len(log_of(home)), number_of(home, "Rex")
    change(home / "sessions.db", f"UPDATE events SET data = x'7b22' WHERE seq = {damaged}")
    shown = await program.run("show", "2", cwd=tmp_path)
    assert shown.code == Exit.FAILED
    assert "Tom is the name." in shown.out
    assert "Rex" not in shown.out
    assert f"Event {damaged} of session" in shown.err
    assert "[event-damaged]" in shown.err
    raw = await program.run("show", "--events", "2", cwd=tmp_path)
    assert [json.loads(line)["seq"] for line in raw.out.splitlines()] == [
        seq for seq in range(1, events + 1) if seq != damaged
    ]
    listed = await program.run("sessions", cwd=tmp_path)
    assert "stopped: damaged" in listed.out
    resumed = await ask(program, tmp_path, "Name the bird.", "Tweety is the name.", "--continue")
    assert (resumed.code, "Tweety" in resumed.out) == (Exit.DONE, True), resumed.err
    assert f"Event {damaged} of this session cannot be read" in resumed.err
    assert f"It continues after event {damaged - 1}." in resumed.err
    log = log_of(home)
    assert [event.seq for event in log] == list(range(1, len(log) + 1))
    assert any(isinstance(one.data, Resumed) for one in log[damaged - 1 :])
    verified = await program.run("audit", "verify", cwd=tmp_path)
    assert (verified.code, f"{events + 1 - damaged} damaged set aside" in verified.out) == (Exit.DONE, True)
    again = await ask(program, tmp_path, "Name the fish.", "Wanda is the name.", "--continue")
    assert "cannot be read" not in again.err


@pytest.fixture(scope="module")
def went_back(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, range]:
    """A folder with a session that went back in its conversation, and on; the events that left, and the way back."""
    folder = tmp_path_factory.mktemp("went_back")

    async def work() -> None:
        program = Program(folder / "home")
        (folder / "w").mkdir()
        for number, task in enumerate(("Name the cat.", "Name the dog.", "Name the bird.", "/rewind 2", "Go on.")):
            more = ("--continue",) if number else ()
            ended = await ask(program, folder / "w", task, "Wanda is the name.", *more)
            assert ended.code == Exit.DONE, ended.err

    asyncio.run(work())
    (left,) = [range(one.data.to + 1, one.seq + 1) for one in log_of(folder / "home") if isinstance(one.data, Rewound)]
    return folder, left


NO_JSON = "UPDATE events SET data = x'7b22' WHERE seq = {}"
ANOTHER_SHAPE = "UPDATE events SET data = x'7b7d' WHERE seq = {}"
DELETED = "DELETE FROM events WHERE seq = {}"


@pytest.mark.parametrize(
    ("place", "fault"),
    [(0, NO_JSON), (0.5, DELETED), (0.9, ANOTHER_SHAPE), (1, NO_JSON), (1, ANOTHER_SHAPE), (1, DELETED)],
    ids=["the first", "in the middle", "one of the last", "the way back", "its shape", "no way back"],
)
async def test_damage_in_what_left_the_conversation_or_in_the_way_back_is_said_and_the_session_goes_on_before_it(
    went_back: tuple[Path, range], tmp_path: Path, place: float, fault: str
) -> None:
    folder, left = went_back
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True, ignore=shutil.ignore_patterns("live"))
    home, work, at = tmp_path / "home", tmp_path / "w", left[int(place * (len(left) - 1))]
    change(home / "sessions.db", fault.format(at))
    change(home / "sessions.db", f"UPDATE sessions SET workspace = '{work}'")
    program = Program(home)
    for command in (("fork",), ("checkpoint", "list"), ("checkpoint", "restore", "1")):
        (row,) = [json.loads(one) for one in (await program.run("sessions", "--json", cwd=work)).out.splitlines()]
        ended = await program.run(*command, *(() if command[0] == "checkpoint" else (row["id"],)), cwd=work)
        assert "Something went wrong inside Treadle" not in ended.err
        assert "[log-conflict]" not in ended.err
        if command[0] == "fork":
            assert "[event-damaged]" in ended.err
    resumed = await ask(program, work, "Name the cow.", "Berta is the name.", "--continue")
    assert (resumed.code, "Berta" in resumed.out) == (Exit.DONE, True), resumed.err
    assert f"It continues after event {at - 1}." in resumed.err
    log = log_of(home)
    assert [event.seq for event in log] == list(range(1, len(log) + 1))
    assert not [event for event in log if isinstance(event.data, Rewound)]
    again = await ask(program, work, "Name the horse.", "Ed is the name.", "--continue")
    assert (again.code, "cannot be read" in again.err) == (Exit.DONE, False)


async def test_a_session_without_a_readable_beginning_is_refused_and_the_others_are_not_affected(
    tmp_path: Path,
) -> None:
    program = await two_turns(tmp_path)
    change(tmp_path / "home" / "sessions.db", "DELETE FROM events WHERE seq = 1")
    refused = await ask(program, tmp_path, "Go on.", "No.", "--continue")
    assert refused.code != Exit.DONE
    assert "[event-damaged]" in refused.err
    assert "Start a new session." in refused.err
    assert "Traceback" not in refused.err
    fresh = await ask(program, tmp_path, "Name the bird.", "Tweety is the name.")
    assert fresh.code == Exit.DONE


async def test_an_older_copy_of_the_log_is_recognised_by_the_audit_and_at_the_next_resume(tmp_path: Path) -> None:
    program = Program(tmp_path / "home")
    path = tmp_path / "home" / "sessions.db"
    await ask(program, tmp_path, "Name the cat.", "Tom is the name.")
    intact = await program.run("audit", "verify", cwd=tmp_path)
    assert (intact.code, "  intact  " in intact.out) == (Exit.DONE, True)
    shutil.copy(path, tmp_path / "copy")
    await ask(program, tmp_path, "Name the dog.", "Rex is the name.", "--continue")
    last = len(log_of(tmp_path / "home"))
    shutil.copy(tmp_path / "copy", path)
    cut = await program.run("audit", "verify", "--json", cwd=tmp_path)
    told = json.loads(cut.out)
    assert (cut.code, told["broken_at"], told["missing"], told["anchored"]) == (Exit.FAILED, None, last, True)
    resumed = await ask(program, tmp_path, "Name the bird.", "Tweety is the name.", "--continue")
    assert resumed.code == Exit.DONE
    assert f"The end of this session's log is missing: event {last} was written" in resumed.err
    still = await program.run("audit", "verify", cwd=tmp_path)
    assert (still.code, f"CUT: event {last} was written and is missing" in still.out) == (Exit.FAILED, True)
    path.unlink()
    gone = await program.run("audit", "verify", cwd=tmp_path)
    assert (gone.code, "  0 events  CUT: event" in gone.out) == (Exit.FAILED, True)
    shutil.rmtree(tmp_path / "home" / "sessions.db-anchors")
    await ask(program, tmp_path, "Name the cat.", "Tom is the name.")
    shutil.rmtree(tmp_path / "home" / "sessions.db-anchors")
    unknown = await program.run("audit", "verify", cwd=tmp_path)
    assert (unknown.code, "intact (its end is not anchored)" in unknown.out) == (Exit.DONE, True)


async def test_sessions_are_searched(tmp_path: Path) -> None:
    program = await two_turns(tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    await ask(program, other, "Name the\x1b[2J horse.", "The name: Ed.")
    found = await program.run("sessions", "--search", "DOG", cwd=tmp_path)
    head, line = found.out.splitlines()
    assert head.endswith("  Name the cat.")
    assert line.split(maxsplit=1)[1] == "Name the dog."
    assert found.code == Exit.DONE
    everywhere = await program.run("sessions", "--search", "name", "--all", "--json", cwd=tmp_path)
    places = [json.loads(one) for one in everywhere.out.splitlines()]
    assert [one["snippet"] for one in places][-4:] == [
        "Rex is the name.",
        "Name the dog.",
        "Tom is the name.",
        "Name the cat.",
    ]
    assert (places[0]["workspace"], places[0]["snippet"]) == (str(other), "The name: Ed.")
    human = await program.run("sessions", "--search", "horse", "--all", cwd=tmp_path)
    assert "\x1b" not in human.out
    nothing = await program.run("sessions", "--search", "walrus", cwd=tmp_path)
    assert (nothing.out, nothing.err) == ("", "Nothing found. --all searches in the sessions of every folder.\n")
    with sqlite3.connect(tmp_path / "home" / "sessions.db") as log:
        assert log.execute("SELECT count(*) FROM sqlite_schema WHERE name LIKE '%words%'").fetchone() == (0,)
    log.close()

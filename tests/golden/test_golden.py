"""Old sessions read the same in every later version: the golden logs of each schema."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.process import Program
from tests.golden import another_version
from tests.golden.config import ARGUMENTS, KEY, config
from tests.golden.logs import Golden, golden_logs, restore
from tests.golden.reading import read, read_state
from treadle.app.errors.exits import Exit
from treadle.engine.core.past_history import read_past
from treadle.protocol.events import Event
from treadle.protocol.notifications import TurnStop
from treadle.protocol.sealed import TurnSettled
from treadle.providers.scripted.script import MakeCall, SayText, Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer
from treadle.store.sqlite import Store

LOGS = golden_logs()
ENDED = [log for log in LOGS if log.ended]
RESUMED = [log for log in LOGS if log.version == "0.1.0" and log.name not in ("budgets", "guidance", "headless")]
"""Those that the real program takes up."""

REPO = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A version of Treadle with other words and defaults, to be put on the path."""
    return another_version.write(tmp_path_factory.mktemp("version"))


@pytest.mark.parametrize("log", LOGS, ids=str)
def test_an_old_session_is_shown_as_before_and_sent_as_the_version_that_wrote_it_did(log: Golden) -> None:
    found = read(log)
    assert found["show"] == log.text("show.txt")
    assert found["messages"] == log.json("messages.json")


def test_a_version_with_other_words_and_defaults_reads_the_same(other: Path) -> None:
    found = _read_by(other, LOGS)
    for log in LOGS:
        assert found["read"][str(log)]["show"] == log.text("show.txt")
        assert found["read"][str(log)]["messages"] == log.json("messages.json")
        state = found["states"][str(log)]
        assert _meant(state) == _meant(read_state(log))


def test_what_another_version_decides_otherwise_changes_nothing_that_was_decided(tmp_path: Path) -> None:
    found = _read_by(another_version.write(tmp_path, rules=True), ENDED)
    for log in LOGS:
        assert found["read"][str(log)]["show"] == log.text("show.txt")
        assert found["read"][str(log)]["messages"] == log.json("messages.json")
    assert found["states"] == {str(log): read_state(log) for log in ENDED}


def _meant(state: dict[str, Any]) -> dict[str, Any]:
    """Leave out of a state what the model has not been told yet: it is said in the words of who says it."""
    return {name: value for name, value in state.items() if name != "notes"}


def _read_by(other: Path, logs: list[Golden]) -> dict[str, Any]:
    """Read logs by another version, in a process of its own."""
    command = [sys.executable, "-m", "tests.golden.reading", *map(str, logs)]
    environment = {**os.environ, "PYTHONPATH": f"{other}{os.pathsep}{REPO}"}
    done = subprocess.run(command, env=environment, cwd=REPO, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_the_other_version_is_another_one(other: Path) -> None:
    """The test above can fail: that version says other words, and its limits are others."""
    code = (
        "from treadle.engine.core import texts, replies; from treadle.protocol.events import Limits; import treadle;"
        "print(treadle.__file__, texts.NOT_STARTED, texts.rejected(''), texts.guidance('x'), Limits(), sep='|')"
    )
    environment = {**os.environ, "PYTHONPATH": str(other)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True)
    file, started, rejected, guided, limits = done.stdout.strip().split("|")
    assert file.startswith(str(other))
    assert all("quite other words" in said for said in (started, rejected, guided))
    assert "max_mistakes=4" in limits


@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.soak)])
async def test_the_real_program_with_other_words_shows_audits_and_resumes_old_sessions(
    other: Path, tmp_path: Path, whole: bool
) -> None:
    program = Program(home=tmp_path / "home", extra={"PYTHONPATH": str(other), KEY: "k"})
    names = ("xml", "ends_asking")
    logs = [Golden(log.version, log.name, str(tmp_path / log.version)) for log in LOGS if log.name in names]
    logs = logs if whole else [logs[0], logs[-1]]
    restore(program.home, logs)
    verified = await program.run("audit", "verify")
    assert (verified.code, verified.out.count("intact")) == (0, len(logs))
    for log in logs:
        log.workspace.mkdir(parents=True)
        shown, audited = await program.run("show", log.id), await program.run("audit", "show", log.id)
        assert (shown.code, shown.out) == (0, log.text("show.txt"))
        lines, before = audited.out.splitlines(), log.text("audit.txt").splitlines()
        assert (audited.code, len(lines)) == (0, len(before))
        # A decision says besides why it was taken.
        assert all(line.startswith(old) for line, old in zip(lines, before, strict=True))
        await _resume(program, log)


async def _resume(program: Program, log: Golden) -> None:
    """Resume a session; the request must hold the conversation that the version which wrote it would have sent."""
    done = MakeCall(name="attempt_completion", arguments={"result": "Done."})
    xml = "<attempt_completion>\n<result>Done.</result>\n</attempt_completion>"
    reply = Turn(items=(SayText(text=xml) if log.name == "xml" else done,))
    async with ScriptedServer(Script(turns=(), otherwise=reply)) as server:
        (program.home / "config.toml").write_text(config(server.base_url))
        ended = await program.run("--resume", log.id, *ARGUMENTS)
    # Where it ended with a question, that is denied in this run, which nobody is there to answer.
    assert ended.code == (Exit.PERMISSION if log.name == "ends_asking" else Exit.DONE), ended.err
    sent = [one for one in server.requests[0].body["messages"] if one["role"] != "system"]
    expected, last = log.json("resumed.json"), log.json("messages.json")["native"][-1]
    whole = not log.ended and last["role"] == "user"
    if log.ended and last["role"] == "user":
        assert all(block["text"] in str(sent[-1]["content"]) for block in last["content"])
    assert list(map(_plain, _old_part(sent, whole=whole))) == list(map(_plain, _old_part(expected, whole=whole)))


def _old_part(messages: list[dict[str, Any]], *, whole: bool) -> list[dict[str, Any]]:
    """Leave out the messages at the end that are sent for the first time: they hold today's words."""
    if whole:
        return messages
    last = max(number for number, one in enumerate(messages) if one["role"] == "assistant")
    return messages[: last + 1]


def _plain(message: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in message.items() if value}


@pytest.mark.sample(2)
@pytest.mark.parametrize("log", [log for log in RESUMED if log.ended], ids=str)
async def test_an_old_session_works_on_and_keeps_what_it_knew(log: Golden, tmp_path: Path) -> None:
    log = Golden(log.version, log.name, str(tmp_path))
    log.workspace.mkdir(parents=True)
    before = read_state(log)
    program = Program(home=tmp_path / "home", extra={KEY: "k"})
    restore(program.home, [log])
    await _resume(program, log)
    events = _stored(program, log)
    state = read_past(events).state
    assert [event.data.outcome.stop for event in events if isinstance(event.data, TurnSettled)][-1] is TurnStop.END_TURN
    after = {"mode": state.mode, "choice": state.choice.model, "turns": state.turns, "checklist": state.checklist.text}
    kept = {"mode": before["mode"], "choice": before["model"]["choice"]["model"], "turns": before["turns"] + 1}
    assert after == {**kept, "checklist": before["checklist"]["text"]}
    assert [one.id for one in state.allowances] == [one["id"] for one in before["allowances"]]
    assert state.money.spent.tokens > before["money"]["spent"].get("tokens", 0)
    shown = await program.run("show", log.id)
    old = log.text("show.txt").partition(" event")[2].partition("\n")[2]
    assert old.rstrip("\n") in shown.out
    assert (await program.run("audit", "verify", log.id)).code == 0


@pytest.mark.sample(2)
@pytest.mark.parametrize("log", [log for log in RESUMED if not log.ended], ids=str)
async def test_a_turn_that_an_old_version_left_unfinished_comes_to_its_end(log: Golden, tmp_path: Path) -> None:
    log = Golden(log.version, log.name, str(tmp_path))
    log.workspace.mkdir(parents=True)
    program = Program(home=tmp_path / "home", extra={KEY: "k"})
    restore(program.home, [log])
    await _resume(program, log)
    state = read_past(_stored(program, log)).state
    assert (state.turn, state.queue, state.questions) == (None, (), ())
    replayed = await program.run("replay", log.id, "--strict")
    assert (replayed.code, replayed.out[:9]) == (0, "The same:")


def _stored(program: Program, log: Golden) -> list[Event]:
    store = Store(program.home / "sessions.db")
    try:
        return list(store.read(log.id))
    finally:
        store.close()

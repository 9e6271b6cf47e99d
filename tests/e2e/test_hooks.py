"""Hooks in the real program: they judge, amend, answer, speak; nothing of a folder runs before trust."""

import asyncio
import json
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.process import Ended, Program
from tests.e2e.running import left_of, model, running
from tests.needed import needs
from treadle.app.errors.exits import Exit
from treadle.providers.scripted.script import Expectation, MakeCall, Script, Texts, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer

DONE = MakeCall(name="attempt_completion", arguments={"result": "Done."})
SANDBOX = needs("sandbox")


def run(line: str) -> MakeCall:
    return MakeCall(name="execute_command", arguments={"command": line})


def write(path: str, content: str = "text") -> MakeCall:
    return MakeCall(name="write_to_file", arguments={"path": path, "content": content})


@dataclass
class Place:
    """A folder, a home of Treadle's and one of the user's."""

    base: Path

    @property
    def folder(self) -> Path:
        return self.base / "ws"

    @property
    def program(self) -> Program:
        return Program(self.base / "home", {"HOME": str(self.base / "people")})

    def settings(self, hooks: Mapping[str, Sequence[Any]], *lines: str, folder: bool = False) -> None:
        """Write the user's settings, or those of the folder."""
        rows = [f"[[hooks.{event}]]\n{_group(group)}" for event, groups in hooks.items() for group in groups]
        file = self.folder / ".treadle" / "config.toml" if folder else self.base / "home" / "config.toml"
        file.write_text("\n".join((*lines, *rows)))

    async def work(self, *calls: MakeCall, words: Sequence[str] = (), task: str = "Work.") -> tuple[Ended, list[Any]]:
        """Work in the folder; gives how it ended, and the bodies of the requests."""
        turns = tuple(Turn(items=(one,)) for one in (*calls, DONE, DONE, DONE))
        async with ScriptedServer(Script(turns=turns)) as server:
            ended = await self.program.run("-p", task, *model(server), "-C", str(self.folder), *words)
            return ended, [request.body for request in server.requests]


def _group(group: Mapping[str, Any]) -> str:
    handlers = ", ".join(
        "{ " + ", ".join(f"{name} = {json.dumps(value)}" for name, value in handler.items()) + " }"
        for handler in group["hooks"]
    )
    return f"matcher = {json.dumps(group.get('matcher', ''))}\nhooks = [{handlers}]\n"


def one(command: str, matcher: str = "", **more: Any) -> list[dict[str, Any]]:
    """One group with one handler."""
    return [{"matcher": matcher, "hooks": [{"type": "command", "command": command, **more}]}]


def says(event: str, **fields: Any) -> str:
    """A command that prints an answer."""
    text = json.dumps({"hookSpecificOutput": {"hookEventName": event, **fields}})
    return f"printf '%s' '{text}'"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    for name in ("home", "people/.claude", "ws/.treadle", "ws/.claude/commands"):
        (tmp_path / name).mkdir(parents=True)
    return Place(tmp_path)


async def test_a_hook_denies_a_call_and_the_model_reads_why(place: Place) -> None:
    deny = says("PreToolUse", permissionDecision="deny", permissionDecisionReason="Not on Friday.")
    place.settings({"PreToolUse": one(deny, "Write")})
    ended, requests = await place.work(write("a.txt"), run("echo hello"), words=["--mode", "full"])
    assert not (place.folder / "a.txt").exists()
    assert "Not on Friday." in json.dumps(requests[1]["messages"][-1])
    assert "hello" in json.dumps(requests[2]["messages"][-1])
    assert "Create a.txt (+1 -0): denied: Not on Friday" in ended.err


@pytest.mark.parametrize(("command", "timeout"), [("exit 1", 60), ("echo '{\"x'", 60), ("sleep 1000", 0.5)])
async def test_a_policy_hook_that_fails_lets_nothing_run(place: Place, command: str, timeout: float) -> None:
    place.settings({"PreToolUse": one(command, "Bash", timeout=timeout)})
    await place.work(run("touch made"), words=["--mode", "full"])
    assert not (place.folder / "made").exists()


async def test_a_policy_hook_may_say_that_its_failure_blocks_nothing_but_its_word_still_does(place: Place) -> None:
    place.settings(
        {"PreToolUse": [*one("exit 1", onFailure="continue"), *one("exit 2", "Write", onFailure="continue")]}
    )
    ended, _ = await place.work(run("touch made"), write("a.txt"), words=["--mode", "full"])
    assert (place.folder / "made").exists(), ended.err
    assert not (place.folder / "a.txt").exists()
    assert "The PreToolUse hook `exit 1` failed: exit status 1." in ended.err


async def test_the_user_s_hook_answers_what_would_be_asked_and_never_what_is_critical(place: Place) -> None:
    allow = says("PermissionRequest", decision={"behavior": "allow"})
    place.settings({"PermissionRequest": one(allow)})
    await place.work(write("a.txt"), run("rm -rf ../people"))
    assert (place.folder / "a.txt").read_text() == "text\n"
    assert (place.base / "people").is_dir()


async def test_a_hook_changes_what_runs_and_what_it_brought(place: Place) -> None:
    amend = says("PreToolUse", updatedInput={"command": "echo instead"}, additionalContext="Beside the call.")
    after = says("PostToolUse", additionalContext="After the call.")
    place.settings({"PreToolUse": one(amend, "Bash"), "PostToolUse": one(after, "Bash")})
    _, requests = await place.work(run("touch made"), words=["--mode", "full"])
    assert not (place.folder / "made").exists()
    read = json.dumps(requests[1]["messages"][-1])
    assert all(text in read for text in ("instead", "Beside the call.", "After the call."))


async def test_the_start_and_each_message_bring_context_and_a_message_can_be_kept_back(place: Place) -> None:
    place.settings({"SessionStart": one("echo from the start"), "UserPromptSubmit": one("echo with the message")})
    _, requests = await place.work()
    read = json.dumps(requests[0]["messages"])
    assert "from the start" in read
    assert "with the message" in read
    place.settings({"UserPromptSubmit": one("cat >&2; exit 2")})
    ended, requests = await place.work(task="Mine.")
    assert (ended.code, requests) == (Exit.FAILED, [])
    assert "A hook kept the message from being sent." in ended.err


async def test_scripts_and_batches_are_told_why_a_hook_keeps_a_message_back(place: Place) -> None:
    place.settings({"UserPromptSubmit": one("echo 'Not today.' >&2; exit 2")})
    ended, requests = await place.work(words=["--output-format", "stream-json", "--verbose"])
    result = json.loads(ended.out.splitlines()[-1])
    assert (ended.code, result["is_error"], requests) == (Exit.FAILED, True, [])
    assert "A hook kept the message from being sent. Not today." in result["errors"][0]
    for output, kinds in (("json", ["result"]), ("stream-json", ["session", "result"])):
        ended, requests = await place.work(words=["--output-format", output])
        records = [json.loads(line) for line in ended.out.splitlines()]
        assert ([one["type"] for one in records], ended.code, requests) == (kinds, Exit.FAILED, [])
        result = records[-1]
        assert (result["stop"], result["completed"], result["exit_code"]) == ("error", False, Exit.FAILED)
        assert result["why"].startswith("A hook kept the message from being sent. Not today.")
        assert (ended.err.count("kept-back"), result["steps"], result["cost"]) == (1, 0, 0.0)
    tasks, out = place.base / "tasks.jsonl", place.base / "out"
    tasks.write_text(json.dumps({"id": "a", "prompt": "Work.", "repo": str(place.folder)}))
    async with ScriptedServer(Script(turns=())) as server:
        await place.program.run("batch", str(tasks), "--out", str(out), *model(server))
    row = json.loads((out / "results.jsonl").read_text())
    assert (row["state"], row["kind"]) == ("error", "setup")
    assert "Not today." in row["why"]


async def test_a_turn_that_a_hook_ends_is_told_with_its_reason(place: Place) -> None:
    place.settings({"PreToolUse": one("""echo '{"continue": false, "stopReason": "Enough for today."}'""")})
    ended, _ = await place.work(write("a.txt"), words=["--output-format", "json", "--mode", "edits"])
    result = json.loads(ended.out)
    assert (ended.code, result["exit_code"]) == (Exit.FAILED, Exit.FAILED)
    assert (result["stop"], result["why"]) == ("cancelled", "a hook: Enough for today.")
    assert "# stopped by a hook: Enough for today.\n" in ended.err
    ended, _ = await place.work(write("a.txt"), words=["--output-format", "stream-json", "--verbose"])
    result = json.loads(ended.out.splitlines()[-1])
    assert (ended.code, result["terminal_reason"]) == (Exit.FAILED, "hook_stopped")
    assert result["errors"] == ["The turn was stopped by a hook: Enough for today."]
    listed = (await place.program.run("sessions", "--json", "-C", str(place.folder))).out.splitlines()
    assert [(row["state"], row["ended"]) for row in map(json.loads, listed)] == [("stopped", "hook")] * 2


async def test_a_subagent_that_a_hook_ends_is_told_with_the_reason(place: Place) -> None:
    stops = (
        """grep -q '"tool_name": "Write"' && echo '{"continue": false, "stopReason": "Enough for today."}'; exit 0"""
    )
    place.settings({"PreToolUse": one(stops)})
    tasks = [{"prompt": "Write it.", "agent": "worker"}]
    turns = (
        Turn(when=Expectation(system=Texts(contains=("You are a subagent",))), items=(write("a.txt"),)),
        Turn(items=(MakeCall(name="use_subagents", arguments={"tasks": tasks}),)),
        Turn(items=(DONE,)),
    )
    async with ScriptedServer(Script(turns=turns)) as server:
        ended = await place.program.run("-p", "Work.", *model(server), "-C", str(place.folder), "--mode", "edits")
        read = json.dumps(server.requests[-1].body["messages"][-1])
    assert 'worker, "Write it.": stopped by a hook: Enough for today.' in ended.err
    assert "It did not finish: a hook: Enough for today" in read


async def test_a_hook_keeps_a_turn_going_once(place: Place) -> None:
    again = "grep -q '\"stop_hook_active\": true' && exit 0; echo 'Run the tests first.' >&2; exit 2"
    place.settings({"Stop": one(again)})
    ended, requests = await place.work()
    assert (ended.code, len(requests)) == (Exit.DONE, 2)
    assert "Run the tests first." in json.dumps(requests[1]["messages"])


ONCE = "grep -q '\"stop_hook_active\": true' && exit 0; echo 'Run the tests first.' >&2; exit 2"


@pytest.mark.parametrize("form", ["json", "stream-json", "host"])
async def test_a_turn_that_a_hook_keeps_going_is_one_with_one_result_and_all_its_figures(
    place: Place, form: str
) -> None:
    place.settings({"Stop": one(ONCE)})
    calls = (write("a.txt"), DONE, write("b.txt"), run("git push origin main"))
    words = ["--output-format", "json" if form == "json" else "stream-json", *(["--verbose"] if form == "host" else [])]
    ended, requests = await place.work(*calls, words=["--mode", "edits", *words])
    said = [json.loads(line) for line in ended.out.splitlines()]
    (result,) = [one for one in said if one.get("type") == "result"]
    assert len(requests) == 5
    assert (place.folder / "b.txt").exists()
    assert sum(one.get("type") == "result" for one in said) == 1
    if form == "host":
        assert result["num_turns"] == 5
        return
    assert "The same:" in (await place.program.run("replay", "--strict", cwd=place.folder)).out
    assert (ended.code, result["steps"], result["denied"]) == (Exit.PERMISSION, 5, 1)
    assert sorted(Path(one["path"]).name for one in result["changes"]) == ["a.txt", "b.txt"]


async def test_a_hook_that_never_lets_a_turn_end_does_not_outdo_its_limit(place: Place) -> None:
    place.settings({"Stop": one("echo 'Not yet.' >&2; exit 2")})
    ended, requests = await place.work(*[DONE] * 9, words=["--max-steps", "4"])
    assert (ended.code, len(requests)) == (Exit.STEPS, 4)
    place.settings({"Stop": one("sleep 60")})
    ended, requests = await place.work(DONE, words=["--max-seconds", "2"])
    assert (ended.code, len(requests)) == (Exit.BUDGET, 1), "nor one that hangs"


@SANDBOX
async def test_a_hook_is_confined_unless_the_user_s_settings_say_otherwise(place: Place) -> None:
    line = f"touch in-workspace; touch {place.base}/people/outside; touch .git/config; true"
    (place.folder / ".git").mkdir()
    place.settings({"SessionEnd": one("true"), "PostToolUse": one(line)})
    await place.work(run("echo x"), words=["--mode", "full"])
    assert (place.folder / "in-workspace").exists()
    assert not (place.base / "people" / "outside").exists()
    assert not (place.folder / ".git" / "config").exists()
    place.settings({"PostToolUse": one(line, confined=False)})
    await place.work(run("echo x"), words=["--mode", "full"])
    assert (place.base / "people" / "outside").exists()


@pytest.mark.parametrize(
    ("entry", "why", "ends"),
    [
        ({"matcher": {}, "hooks": [{"command": "true"}]}, "matcher is not a string", Exit.FAILED),
        ({"matcher": "Bash", "hooks": [{"command": 5}]}, "command is not a string", Exit.DONE),
    ],
)
async def test_one_wrong_entry_blocks_what_it_would_judge_and_the_session_goes_on(
    place: Place, entry: dict[str, Any], why: str, ends: Exit
) -> None:
    wrong = {"PreToolUse": [entry]}
    (place.base / "people" / ".claude" / "settings.json").write_text(json.dumps({"hooks": wrong}))
    place.settings({}, 'hooks_from = ["claude"]')
    ended, requests = await place.work(run("touch made"), words=["--mode", "full"])
    assert ended.code == ends
    assert not (place.folder / "made").exists()
    assert f"hooks.PreToolUse[1]: {why}" in json.dumps(requests[1]["messages"][-1])
    assert f"does not run: hooks.PreToolUse[1]: {why}. What it would judge is blocked." in ended.err


@pytest.mark.parametrize(
    "line",
    ['echo noise; echo \'{"decision": "block"}\'', 'printf \'\\357\\273\\277{"decision": "block"}\'', "echo deny"],
)
async def test_a_no_in_any_form_is_one(place: Place, line: str) -> None:
    place.settings({"PreToolUse": one(line, "Bash")})
    await place.work(run("touch made"), words=["--mode", "full"])
    assert not (place.folder / "made").exists()


@SANDBOX
async def test_a_hook_of_the_user_logs_below_claude_and_nothing_there_that_runs_or_configures_changes(
    place: Place,
) -> None:
    claude = place.base / "people" / ".claude"
    (claude / "hooks").mkdir()
    (claude / "hooks" / "log.py").write_text(
        "import json, pathlib, sys\n"
        "claude = pathlib.Path.home() / '.claude'\n"
        "(claude / 'logs').mkdir(exist_ok=True)\n"
        "for name in ('logs/calls.json', 'calls.log'):\n"
        "    with open(claude / name, 'a') as log:\n"
        "        log.write(json.load(sys.stdin)['tool_name'] if name == 'calls.log' else 'x')\n"
        "for name in ('settings.json', 'hooks/log.py', 'agents/x.md', 'new.md', '../.bashrc'):\n"
        "    try:\n"
        "        open(claude / name, 'a').write('x')\n"
        "        print('wrote', name)\n"
        "    except OSError:\n"
        "        pass\n"
    )
    before = (claude / "hooks" / "log.py").read_text()
    logs = "mkdir -p .claude/logs; echo x >> .claude/logs/a.log; echo x >> .claude/settings.json; true"
    place.settings({"PreToolUse": one("python3 ~/.claude/hooks/log.py", "Bash"), "PostToolUse": one(logs, "Bash")})
    await place.work(run("touch made"), words=["--mode", "full"])
    assert (place.folder / "made").exists()
    assert (claude / "calls.log").read_text() == "Bash"
    assert (claude / "logs" / "calls.json").read_text() == "x"
    assert (place.folder / ".claude" / "logs" / "a.log").read_text() == "x\n"
    assert not (place.folder / ".claude" / "settings.json").exists()
    assert (claude / "hooks" / "log.py").read_text() == before
    assert sorted(path.name for path in claude.iterdir()) == ["calls.log", "hooks", "logs"]
    assert not (claude.parent / ".bashrc").exists()


@SANDBOX
@pytest.mark.parametrize("line", ["echo x >> ~/kept/x || exit 2", "set -e; echo x >> ~/kept/x", "cat ~/kept/$(echo x)"])
async def test_a_hook_that_the_sandbox_stopped_is_said_to_be_that_with_what_to_set(place: Place, line: str) -> None:
    (place.base / "people" / "kept").mkdir()
    (place.base / "people" / "kept" / "x").write_text("y")
    place.settings({"PreToolUse": one(line, "Bash")})
    _, requests = await place.work(run("touch made"), words=["--mode", "full"])
    assert not (place.folder / "made").exists()
    read = json.dumps(requests[1]["messages"][-1])
    assert "The sandbox stopped this hook. The sandbox does not allow" in read
    assert "set confined = false for it in" in read


@SANDBOX
async def test_a_folder_s_hook_logs_there_and_one_that_the_sandbox_stopped_says_what_to_set(place: Place) -> None:
    (place.base / "people" / "kept").mkdir()
    logs = 'mkdir -p "$CLAUDE_PROJECT_DIR"/.claude/logs && cat >> "$CLAUDE_PROJECT_DIR"/.claude/logs/calls.jsonl'
    passes = one("echo x >> ~/kept/x", "Bash", onFailure="continue")
    (place.folder / ".claude").mkdir(exist_ok=True)
    place.settings({"PreToolUse": [*one(logs, "Bash"), *passes]}, folder=True)
    ended, _ = await place.work(run("touch made"), words=["--mode", "full", "--trust"])
    assert (place.folder / "made").exists(), ended.err
    assert json.loads((place.folder / ".claude" / "logs" / "calls.jsonl").read_text())["tool_name"] == "Bash"
    assert "The sandbox stopped this hook." in ended.err
    assert 'set onFailure = "continue" for it in' in ended.err


EVENTS = ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "SessionEnd", "PermissionRequest")


async def test_nothing_of_a_folder_runs_before_trust_and_its_hooks_do_after(place: Place) -> None:
    marks = place.folder / "marks"
    marks.mkdir()
    place.settings({event: one(f"touch marks/treadle-{event}") for event in EVENTS}, folder=True)
    claude = {event: one(f"touch marks/claude-{event}") for event in EVENTS}
    for name in ("settings.json", "settings.local.json"):
        (place.folder / ".claude" / name).write_text(json.dumps({"hooks": claude, "permissions": {"allow": ["Bash"]}}))
    (place.folder / ".claude" / "commands" / "go.md").write_text("!`touch marks/command`\nGo.\n")
    place.settings({}, 'hooks_from = ["claude"]')
    await place.work(run("ls"))
    await place.work(run("ls"), task="/go")
    listed = await place.program.run("hooks", "list", "--json", "-C", str(place.folder))
    assert list(marks.iterdir()) == []
    rows = [json.loads(line) for line in listed.out.splitlines()]
    assert {row["active"] for row in rows} == {False}
    assert len(rows) == 3 * len(EVENTS)
    await place.work(run("ls"), words=["--trust"])
    ran = {path.name for path in marks.iterdir()}
    missing = {f"{who}-{event}" for who in ("treadle", "claude") for event in EVENTS} - ran
    assert missing == {"treadle-PermissionRequest", "claude-PermissionRequest"}


async def test_a_folder_s_hook_can_forbid_and_not_allow(place: Place) -> None:
    allow = says("PermissionRequest", decision={"behavior": "allow"})
    both = {"PermissionRequest": one(allow), "PreToolUse": one(says("PreToolUse", permissionDecision="allow"), "Write")}
    place.settings(both, folder=True)
    await place.work(write("a.txt"), words=["--trust"])
    assert not (place.folder / "a.txt").exists()


async def test_a_hook_ends_when_treadle_is_killed(place: Place) -> None:
    marker = "987601.5"
    place.settings({"PreToolUse": one(f"touch began; sleep {marker}")})
    turns = (Turn(items=(run("ls"),)), Turn(items=(DONE,)))
    async with ScriptedServer(Script(turns=turns)) as server:
        words = ("-p", "Work.", *model(server), "-C", str(place.folder))
        async with running(place.program, *words) as live:
            await live.until("call_changed", status="judging")
            while not (place.folder / "began").exists():
                await asyncio.sleep(0.02)
            live.send(signal.SIGKILL)
            await live.end()
    assert left_of(f"sleep {marker}") == []


async def test_an_interrupt_ends_a_slow_hook(place: Place) -> None:
    marker = "987602.5"
    place.settings({"PreToolUse": one(f"touch began; sleep {marker}")})
    turns = (Turn(items=(run("ls"),)), Turn(items=(DONE,)))
    async with ScriptedServer(Script(turns=turns)) as server:
        words = ("-p", "Work.", *model(server), "-C", str(place.folder))
        async with running(place.program, *words) as live:
            await live.until("call_changed", status="judging")
            while not (place.folder / "began").exists():
                await asyncio.sleep(0.02)
            live.send(signal.SIGINT)
            ended = await live.end()
    assert ended.code == Exit.INTERRUPTED
    assert left_of(f"sleep {marker}") == []


@pytest.mark.parametrize(
    "events",
    [
        ("Stop",),
        ("UserPromptSubmit",),
        ("PreToolUse",),
        ("SessionStart",),
        ("Stop", "UserPromptSubmit", "PreToolUse", "SessionStart", "PostToolUse"),
    ],
)
async def test_what_hooks_change_is_listed_with_their_turn_and_undone_with_it(
    place: Place, events: tuple[str, ...]
) -> None:
    (place.folder / "a.txt").write_text("one\n")
    (place.folder / "own.txt").write_text("mine\n")
    formats = "sed -i s/two/TWO/ a.txt; echo {0} >> {0}.txt; echo {0} >> own.txt"
    place.settings({event: one(formats.format(event)) for event in events})
    reads = MakeCall(name="read_file", arguments={"path": "a.txt"})
    words = ("--mode", "edits", "--output-format", "json")
    ended, _ = await place.work(reads, write("a.txt", "two\n"), words=words)
    found = json.loads(ended.out)
    names = {Path(change["path"]).name for change in found["changes"]}
    assert (names, found["exact"]) == ({"a.txt", "own.txt", *(f"{event}.txt" for event in events)}, True)
    place.settings({})
    undone = await place.program.run("checkpoint", "restore", "1", "--yes", cwd=place.folder)
    assert undone.code == 0, undone.err
    assert (place.folder / "a.txt").read_text() == "one\n"
    assert (place.folder / "own.txt").read_text() == "mine\n"
    assert not any((place.folder / f"{event}.txt").exists() for event in events)


async def test_undo_takes_back_what_a_hook_did_at_the_end_of_a_turn_and_before_it(place: Place) -> None:
    (place.folder / "a.txt").write_text("one\n")
    place.settings({"Stop": one("sed -i s/two/TWO/ a.txt"), "UserPromptSubmit": one("echo x >> prompts.txt")})
    reads = MakeCall(name="read_file", arguments={"path": "a.txt"})
    await place.work(reads, write("a.txt", "two\n"), words=("--mode", "edits"))
    assert (place.folder / "a.txt").read_text() == "TWO\n"
    place.settings({})
    undone, _ = await place.work(words=("--continue",), task="/undo")
    assert "1 file restored, 1 file deleted." in undone.out, undone.out + undone.err
    assert (place.folder / "a.txt").read_text() == "one\n"
    assert not (place.folder / "prompts.txt").exists()


async def test_what_a_hook_changes_that_nobody_waits_for_is_shown_and_left_by_an_undo(place: Place) -> None:
    (place.folder / "a.txt").write_text("one\n")
    place.settings({"PreToolUse": one("echo x >> late.txt", "Write", **{"async": True}), "Stop": one("sleep 1")})
    reads = MakeCall(name="read_file", arguments={"path": "a.txt"})
    ended, _ = await place.work(reads, write("a.txt", "two\n"), words=("--mode", "edits", "--output-format", "json"))
    names = {Path(change["path"]).name for change in json.loads(ended.out)["changes"]}
    assert names == {"a.txt", "late.txt"}

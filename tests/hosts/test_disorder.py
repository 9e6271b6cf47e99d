"""A host that says anything at any moment: each request is answered once, nothing hangs, the end is as documented."""

import asyncio
import json
import random
import uuid
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.hosts.driving import ASKS, BOTH, PATIENCE, Driver, driving
from tests.hosts.place import Host, run, write
from treadle.providers.scripted.script import MakeCall, Pace, SayText, Turn

STEPS = (
    write("a.txt", "one\n"),
    run("echo hi; sleep 0.1"),
    MakeCall(name="ask_followup_question", arguments={"question": "Which?", "options": ["a", "b"]}),
    MakeCall(name="read_file", arguments={"path": "a.txt"}),
    MakeCall(name="attempt_completion", arguments={"result": "Done."}),
)
NONSENSE = (
    b"",
    b"nonsense",
    b"[1]",
    b'{"type": 3}',
    b"{" * 2_000,
    b"[" * 200_000,
    b'"\xff"',
    b'{"type": "keep_alive"}',
)
CODES = {0, 1, 2, 53, 55, 56, 57, 130}
BLOCK = {"decision": "block", "reason": "Not now."}
HOOKS = {event: [{"matcher": None, "hookCallbackIds": [event]}] for event in ("PreToolUse", "UserPromptSubmit")}
REQUESTS: tuple[dict[str, Any], ...] = (
    *({"subtype": "set_permission_mode", "mode": mode} for mode in ("default", "plan", "acceptEdits", "dontAsk", "x")),
    {"subtype": "set_model"},
    *({"subtype": "set_model", "model": model} for model in ("default", "other", "a/b/c")),
    *({"subtype": "set_max_thinking_tokens", "max_thinking_tokens": most} for most in (None, 0, 2_000, -1, True)),
    {"subtype": "initialize", "hooks": HOOKS},
    {"subtype": "get_context_usage"},
    {"subtype": "mcp_status"},
    {"subtype": "mcp_reconnect", "serverName": "none"},
    {"subtype": "mcp_toggle", "serverName": "none", "enabled": False},
    {"subtype": "rewind_files", "user_message_id": "none", "dry_run": True},
    {"subtype": "stop_task", "task_id": "none"},
    {"subtype": "no_such_request"},
    {},
)


@dataclass
class Disorder:
    """What was said, and what came back."""

    driver: Driver
    chance: random.Random
    requests: list[str] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)

    def one(self) -> None:
        """Say something."""
        match self.chance.choice(["message"] * 4 + ["control"] * 4 + ["interrupt"] * 2 + ["nonsense", "answer"]):
            case "message":
                more = {"priority": "now"} if self.chance.random() < 0.2 else {}
                same = "11111111-1111-4111-8111-111111111111" if self.chance.random() < 0.2 else str(uuid.uuid4())
                text = self.chance.choice(["go", "go on", "/status", "/compact", "/no-such-command", "", "/undo"])
                self.driver.ask(text, uuid=same, **more)
                self.messages.append(same)
            case "control":
                self.control(self.chance.choice(REQUESTS))
            case "interrupt":
                self.control({"subtype": "interrupt"})
            case "nonsense":
                self.driver.say(self.chance.choice(NONSENSE))
            case _:
                self._answer(uuid.uuid4().hex)

    def control(self, request: dict[str, Any]) -> None:
        self.requests.append(f"r{len(self.requests)}")
        self.driver.say({"type": "control_request", "request_id": self.requests[-1], "request": request})

    def _answer(self, request_id: str) -> None:
        allow = {
            "behavior": "allow",
            "updatedInput": self.chance.choice([None, {}, {"file_path": 3}, {"command": "ls"}]),
        }
        given = self.chance.choice(
            [allow, {"behavior": "allow"}, {"behavior": "deny", "interrupt": True}, BLOCK, {}, None]
        )
        said: Any = {"subtype": "success", "request_id": request_id, "response": given}
        if self.chance.random() < 0.2:
            said = {"subtype": "error", "request_id": request_id, "error": "no"}
        self.driver.say({"type": "control_response", "response": said})

    async def answer(self) -> None:
        """Read what comes; answer what is asked, mostly, after a while, and sometimes twice."""
        assert self.driver.process.stdout is not None
        loop = asyncio.get_running_loop()
        async for line in self.driver.process.stdout:
            frame = json.loads(line)
            self.driver.frames.append(frame)
            if frame["type"] == "control_request" and not self.driver.process.stdin.is_closing():  # type: ignore[union-attr]
                for _ in range(self.chance.choice([1, 1, 1, 2])):
                    loop.call_later(self.chance.random() * 0.2, self._answer, frame["request_id"])


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_whatever_a_host_says_in_whatever_order_is_answered(host: Host, seed: int) -> None:
    chance = random.Random(seed)
    if seed % 2:
        (host.folder / "AGENTS.md").write_text("Be brief.\n")
    turns = [Turn(items=(SayText(text="So."), chance.choice(STEPS)), pace=Pace(chunk=1)) for _ in range(300)]
    flags = (*BOTH, *ASKS, "--max-turns", "10", "--include-partial-messages", "--replay-user-messages")
    async with host.model(*turns) as environment:
        environment["CLAUDE_CODE_SDK_READS_SESSION_STATE"] = "1"
        async with driving(host, environment, *flags) as driver:
            disorder = Disorder(driver, chance)
            reading = asyncio.create_task(disorder.answer())
            if chance.random() < 0.8:
                disorder.control({"subtype": "initialize", "hooks": HOOKS})
            for _ in range(chance.randrange(30)):
                disorder.one()
                await asyncio.sleep(chance.choice([0, 0.01, chance.random() * 0.15]))
            driver.close()
            async with asyncio.timeout(PATIENCE):
                await reading
            code, said = await driver.end()
    replies = Counter(frame["response"]["request_id"] for frame in driver.of("control_response"))
    assert replies == dict.fromkeys(disorder.requests, 1)
    assert code in CODES
    assert [line for line in said.splitlines() if not line.startswith(("treadle: ", "  "))] == []
    results = driver.of("result")
    assert [one["errors"] for one in results if "inside Treadle" in str(one["errors"])] == []
    answered = Counter(uuid for one in results for uuid in one["user_message_uuids"])
    assert answered <= Counter(disorder.messages)
    assert set(answered) == set(disorder.messages)
    states = [one["state"] for one in driver.of("system") if one["subtype"] == "session_state_changed"]
    assert states[-1:] == ["idle"] * bool(disorder.messages)

"""Sessions of Codex and of Cline's command line, in the shapes that their versions keep them in."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.app.foreign_corpus import claude_lines
from treadle.app.importing.claude_code_transcript import read_transcript
from treadle.app.importing.cline_session import read_session
from treadle.app.importing.codex_rollout import is_rollout, read_rollout
from treadle.app.importing.imported_log import ForeignMessage, ForeignSession
from treadle.app.importing.session_import import import_sessions
from treadle.app.reports.known_sessions import listed_sessions
from treadle.protocol.messages import Image, Role, Text, Thinking
from treadle.protocol.usage import Usage


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    return tmp_path


def words(session: ForeignSession) -> list[tuple[str, str]]:
    return [(_side(one), _said(one)) for one in session.messages]


def _side(message: ForeignMessage) -> str:
    return "user" if message.role is Role.USER else "model"


def _said(message: ForeignMessage) -> str:
    said = [one.text if isinstance(one, Text | Thinking) else type(one).__name__ for one in message.content]
    said += [f"{call.name}{json.dumps(call.arguments)}" for call in message.calls]
    for result in message.results.values():
        said += [f"={'!' * result.is_error}{one.text}" for one in result.content if isinstance(one, Text)]
    return " | ".join(said)


def item(kind: str, **payload: Any) -> dict[str, Any]:
    return {"timestamp": "2026-03-01T10:00:00.000Z", "type": "response_item", "payload": {"type": kind, **payload}}


def of(role: str, *texts: str) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    return item("message", role=role, content=[{"type": kind, "text": text} for text in texts])


def event(kind: str, **payload: Any) -> dict[str, Any]:
    return {"timestamp": "2026-03-01T10:00:00.000Z", "type": "event_msg", "payload": {"type": kind, **payload}}


META = {
    "timestamp": "2026-03-01T10:00:00.000Z",
    "type": "session_meta",
    "payload": {"id": "0199-a", "cwd": "/shop", "cli_version": "0.150.0", "model_provider": "openai", "source": "cli"},
}
CONTEXT = {"type": "turn_context", "payload": {"cwd": "/shop", "model": "gpt-6-codex", "approval_policy": "never"}}
ASKED, ANSWERED = of("user", "Why does it fail?"), of("assistant", "By zero.")
PICTURE = {"type": "input_image", "image_url": "data:image/png;base64,aGk="}

CODEX: dict[str, tuple[Sequence[Any], list[tuple[str, str]]]] = {
    "words": ([META, CONTEXT, ASKED, ANSWERED], [("user", "Why does it fail?"), ("model", "By zero.")]),
    "what Codex adds": (
        [
            META,
            of("developer", "<permissions instructions>"),
            of("user", "<environment_context>\n<cwd>/x</cwd>\n</environment_context>"),
            of("user", "# AGENTS.md instructions for /shop\n\n<INSTRUCTIONS>…"),
            of("user", "# Context from my IDE setup:\n\n## My request for Codex:\nWhy does it fail?"),
            event("user_message", message="Why does it fail?"),
            ANSWERED,
            event("agent_message", message="By zero."),
        ],
        [("user", "Why does it fail?"), ("model", "By zero.")],
    ),
    "calls": (
        [
            META,
            ASKED,
            item("reasoning", summary=[{"type": "summary_text", "text": "look"}], encrypted_content="x"),
            item("function_call", name="shell", arguments='{"command":["ls"]}', call_id="1"),
            item("custom_tool_call", name="apply_patch", input="*** Begin", call_id="2"),
            item("local_shell_call", action={"type": "exec"}, call_id="3"),
            item("function_call_output", call_id="1", output='{"output":"a.py","metadata":{"exit_code":1}}'),
            item("custom_tool_call_output", call_id="2", output={"content": "Done", "success": True}),
            item("function_call_output", call_id="3", output=[{"type": "input_text", "text": "/shop"}]),
            ANSWERED,
        ],
        [
            ("user", "Why does it fail?"),
            (
                "model",
                'look | shell{"command": ["ls"]} | apply_patch{"input": "*** Begin"} | local_shell{"type": "exec"}',
            ),
            ("user", "=!a.py | =Done | =/shop"),
            ("model", "By zero."),
        ],
    ),
    "taken back": (
        [META, ASKED, ANSWERED, of("user", "no"), of("assistant", "x"), event("thread_rolled_back", num_turns=1)],
        [("user", "Why does it fail?"), ("model", "By zero.")],
    ),
    "words in events alone": (
        [META, event("user_message", message="Why?"), event("agent_message", message="So.")],
        [("user", "Why?"), ("model", "So.")],
    ),
    "bare lines of 2025": (
        [
            {"id": "0199-a", "timestamp": "2025-06-01T10:00:00.000Z", "instructions": None, "git": {}},
            {"record_type": "state"},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "<environment_context>"}]},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Why?"}]},
            {"type": "function_call", "name": "shell", "arguments": "not json", "call_id": "1"},
            {"type": "function_call_output", "call_id": "1", "output": "ok"},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "So."}]},
        ],
        [("user", "Why?"), ("model", 'shell{"input": "not json"}'), ("user", "=ok"), ("model", "So.")],
    ),
    "a picture": (
        [META, item("message", role="user", content=[PICTURE, {"type": "input_text", "text": "This?"}]), ANSWERED],
        [("user", "Image | This?"), ("model", "By zero.")],
    ),
}


@pytest.mark.parametrize("shape", CODEX)
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_rollout_of_codex_becomes_the_conversation_that_it_holds(home: Path, shape: str, mark: str) -> None:
    lines, said = CODEX[shape]
    file = home / "rollout-2026-03-01T10-00-00-0199-a.jsonl"
    file.write_text(mark + "".join(f"{json.dumps(line)}\n" for line in lines))
    assert is_rollout(lines[0])
    found = read_rollout(file)
    assert words(found) == said
    assert (found.origin, found.id, found.problems) == ("codex", "0199-a", ())
    report = list(import_sessions(home))
    assert [one.failed for one in report] == [False]
    assert [session.workspace for session in listed_sessions(None)] in (["/shop"], [str(Path.home())])


def test_the_first_versions_of_codex_kept_one_value(home: Path) -> None:
    items = [{"role": "user", "type": "message", "content": [{"type": "input_text", "text": "Why?"}]}]
    value = {"session": {"id": "0199-a", "timestamp": "2025-04-01T10:00:00.000Z"}, "items": items}
    (home / "rollout-a.json").write_text(json.dumps(value, indent=2))
    assert words(read_rollout(home / "rollout-a.json")) == [("user", "Why?")]
    assert [one.failed for one in import_sessions(home)] == [False]


def test_what_a_rollout_says_of_model_use_and_broken_lines_is_kept(home: Path) -> None:
    used = {"input_tokens": 100, "cached_input_tokens": 60, "output_tokens": 7, "total_tokens": 107}
    count = event("token_count", info={"last_token_usage": used, "total_token_usage": used})
    file = home / "rollout-a.jsonl"
    lines = [json.dumps(line) for line in (META, CONTEXT, ASKED, ANSWERED, count, count)]
    file.write_text("\n".join((*lines, '{"type": "respon')))
    found = read_rollout(file)
    assert found.model == "openai/gpt-6-codex"
    assert found.messages[1].usage == Usage(input_tokens=40, output_tokens=7, cache_read_tokens=60)
    assert found.problems == ("1 lines are broken and were left out: 7.",)


@settings(max_examples=30)
@given(st.data())
def test_no_rollout_breaks_the_reading(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    odd = st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=8), lambda x: st.lists(x, max_size=3)
    )
    keys = st.sampled_from(
        ["type", "role", "content", "call_id", "output", "arguments", "summary", "message", "action"]
    )
    kinds = st.sampled_from(["message", "reasoning", "function_call", "function_call_output", "token_count"])
    payload = st.dictionaries(keys, odd | kinds, max_size=5)
    lines = data.draw(st.lists(st.builds(lambda kind, one: {"type": kind, "payload": one}, st.sampled_from(
        ["session_meta", "response_item", "event_msg", "turn_context"]), payload), max_size=6))  # fmt: skip
    file = tmp_path_factory.mktemp("odd") / "rollout-a.jsonl"
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    assert read_rollout(file).origin == "codex"


def cline(home: Path, messages: Any, meta: Any = None, name: str = "1785701064304_abcde") -> Path:
    folder = home / "sessions" / name
    folder.mkdir(parents=True)
    said = {"session_id": name, "provider": "anthropic", "model": "m", "cwd": "/shop", "metadata": {"title": "Cart"}}
    (folder / f"{name}.json").write_text(json.dumps(said) if meta is None else meta)
    file = folder / f"{name}.messages.json"
    file.write_text(messages if isinstance(messages, str) else json.dumps({"version": 1, "messages": messages}))
    return file


CLINE_MESSAGES: list[dict[str, Any]] = [
    {"id": "1", "role": "user", "ts": 1_785_701_064_304, "content": '<user_input mode="act">Fix it</user_input>'},
    {
        "id": "2",
        "role": "assistant",
        "ts": 1_785_701_065,
        "content": [
            {"type": "thinking", "thinking": "hm"},
            {"type": "text", "text": "I look."},
            {"type": "tool_use", "id": "c", "name": "run_commands", "input": {"commands": ["ls"]}},
        ],
        "modelInfo": {"id": "claude-x", "provider": "anthropic"},
        "metrics": {"inputTokens": 9, "outputTokens": 2, "cacheReadTokens": 4, "cacheWriteTokens": 1, "cost": 0.5},
    },
    {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "c", "content": [{"type": "text", "text": "a.py"}]},
            {"type": "text", "text": '<user_input mode="plan"><mode_notice>a\nb</mode_notice>And then?</user_input>'},
        ],
    },
    {"role": "assistant", "content": "Done."},
]  # fmt: skip


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_session_of_clines_command_line_becomes_the_conversation_that_it_holds(home: Path, mark: str) -> None:
    file = cline(home, mark + json.dumps({"version": 1, "messages": CLINE_MESSAGES}))
    found = read_session(file)
    assert words(found) == [
        ("user", "Fix it"),
        ("model", 'hm | I look. | run_commands{"commands": ["ls"]}'),
        ("user", "And then? | =a.py"),
        ("model", "Done."),
    ]
    assert (found.model, found.workspace, found.title, found.problems) == ("anthropic/claude-x", "/shop", "Cart", ())
    reply = found.messages[1]
    used = Usage(input_tokens=9, output_tokens=2, cache_read_tokens=4, cache_write_tokens=1)
    assert (reply.usage, reply.cost, reply.at) == (used, 0.5, 1_785_701_065_000)
    assert [one.failed for one in import_sessions(home / "sessions")] == [False]
    assert [one.failed for one in import_sessions(file.with_name(f"{file.parent.name}.json"))] == [False]
    assert len(listed_sessions(None)) == 1


@pytest.mark.parametrize(
    ("messages", "meta", "says"),
    [
        (json.dumps({"messages": CLINE_MESSAGES})[:-40], None, "is broken; its first 3 messages were read."),
        ('{"messages": {}}', None, "has no list of messages."),
        (json.dumps({"messages": [1, *CLINE_MESSAGES]}), None, "1 messages are no objects and were left out."),
        (json.dumps({"messages": CLINE_MESSAGES}), "{", "cannot be read; the folder and the model are not known."),
    ],
)
def test_what_is_broken_in_a_session_of_cline_is_named(home: Path, messages: str, meta: str | None, says: str) -> None:
    (problem,) = read_session(cline(home, messages, meta)).problems
    assert says in problem


def test_a_mark_before_a_transcript_costs_no_prompt(home: Path) -> None:
    lines = [json.dumps(line) for line in claude_lines()[2:]]
    (home / "t.jsonl").write_text("\ufeff" + "\r\n".join(lines))
    found = read_transcript(home / "t.jsonl")
    assert (words(found)[0], found.problems) == (("user", "Why does the cart fail?"), ())
    assert not any(isinstance(one, Image) for message in found.messages for one in message.content)

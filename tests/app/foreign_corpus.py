"""Conversations as Claude Code and Cline keep them, whole and broken, made from the public formats."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HOSTILE = "<script>alert(1)</script> \x1b[2J \u202egnp.exe"


def claude_entry(kind: str, content: Any, name: str, parent: str = "", **more: Any) -> dict[str, Any]:
    """Give a line of a transcript."""
    message = {"role": kind, "content": content, **more.pop("message", {})}
    return {
        "type": kind,
        "uuid": name,
        "parentUuid": parent or None,
        "sessionId": "0d3f2a-session",
        "cwd": "/project",
        "timestamp": "2026-01-23T17:19:55.583Z",
        "isSidechain": False,
        "message": message,
        **more,
    }


def claude_lines() -> list[dict[str, Any]]:
    """A transcript with a call, two lines for one reply, a side conversation, and a prompt that was taken back."""
    reply = {"id": "m1", "model": "claude-sonnet-4-5", "usage": {"input_tokens": 100, "output_tokens": 7}}
    return [
        {"type": "file-history-snapshot", "messageId": "x", "snapshot": {}},
        {"type": "summary", "summary": "The failing cart", "leafUuid": "a3"},
        claude_entry("user", "Why does the cart fail?", "u1"),
        claude_entry("user", "(of an agent)", "s1", isSidechain=True),
        claude_entry("assistant", [{"type": "text", "text": "I look."}], "a1", "u1", message=reply),
        claude_entry(
            "assistant",
            [{"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "pytest -q 'zebra'"}}],
            "a2",
            "a1",
            message=reply,
        ),
        claude_entry(
            "user",
            [{"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "1 failed"}]}],
            "u2",
            "a2",
        ),
        claude_entry(
            "assistant",
            [{"type": "text", "text": "It divides by zero."}, {"type": "odd_block", "value": [1, "giraffe"]}],
            "a3",
            "u2",
        ),
        claude_entry("user", "a prompt that was taken back", "u3", "a3"),
        claude_entry("assistant", [{"type": "text", "text": "never mind"}], "a4", "u3"),
        claude_entry("user", HOSTILE, "u4", "a3"),
        claude_entry("assistant", "Done.", "a5", "u4"),
    ]


def write_lines(file: Path, entries: Sequence[Any]) -> Path:
    """Write a transcript."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(f"{json.dumps(one, separators=(',', ':'))}\n" for one in entries))
    return file


CLINE_CONVERSATION: list[dict[str, Any]] = [
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "<task>\nAdd a discount.\n</task>"},
            {
                "type": "text",
                "text": "<environment_details>\n# Current Working Directory (/shop) Files\n</environment_details>",
            },
        ],
    },
    {
        "role": "assistant",
        "content": [
            {
                "type": "text",
                "text": "I read it.\n\n<read_file>\n<path>src/cart.py</path>\n</read_file>",
            }
        ],
    },
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "[read_file for 'src/cart.py'] Result:"},
            {"type": "text", "text": "total = 0  # giraffe"},
            {"type": "text", "text": "<environment_details>\nnothing\n</environment_details>"},
        ],
    },
    {
        "role": "assistant",
        "content": [
            {"type": "tool_use", "id": "toolu_2", "name": "execute_command", "input": {"command": "make test"}},
        ],
        "modelInfo": {"providerId": "anthropic", "modelId": "claude-opus-4-5", "mode": "act"},
    },
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_2", "content": "passed"}]},
    {
        "role": "assistant",
        "content": [
            {
                "type": "text",
                "text": "<attempt_completion>\n<result>The discount works.</result>\n</attempt_completion>",
            }
        ],
    },
]


def write_task(folder: Path, conversation: Any = CLINE_CONVERSATION) -> Path:
    """Write a task folder."""
    folder.mkdir(parents=True)
    (folder / "api_conversation_history.json").write_text(json.dumps(conversation))
    request = {"request": "…", "tokensIn": 12, "tokensOut": 3, "cacheWrites": 0, "cacheReads": 5, "cost": 0.25}
    screen = [
        {"ts": 1_735_700_000_000, "type": "say", "say": "task", "text": "Add a discount."},
        *(
            {"ts": 1_735_700_001_000 + at, "type": "say", "say": "api_req_started", "text": json.dumps(request)}
            for at in range(3)
        ),
        {"ts": 1_735_700_009_000, "type": "say", "say": "completion_result", "text": "The discount works."},
    ]
    (folder / "ui_messages.json").write_text(json.dumps(screen))
    metadata = {"files_in_context": [], "model_usage": [{"ts": 1, "model_id": "m", "model_provider_id": "anthropic"}]}
    (folder / "task_metadata.json").write_text(json.dumps(metadata))
    return folder

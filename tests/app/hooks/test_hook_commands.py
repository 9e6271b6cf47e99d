"""Hooks that are real commands: what they are given, what they answer, and how badly they can behave."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.running import left_of
from tests.orphans import no_orphans
from treadle.app.config.hook_settings import HookEvent, HookSpec
from treadle.app.hooks.hook_commands import CommandHook, HookPlace
from treadle.app.hooks.hook_places import LogPlaces
from treadle.app.hooks.hook_rows import HookAnswer, HookFailedError
from treadle.app.security.hook_files import HookFiles
from treadle.workspace.workspace import Workspace, open_workspace

__all__ = ["no_orphans"]

PRE = HookEvent.PRE_TOOL_USE
GIVEN: dict[str, Any] = {"tool_name": "Bash", "tool_input": {"command": "ls ü"}}


@pytest.fixture
async def workspace(tmp_path: Path) -> AsyncIterator[Workspace]:
    (tmp_path / "ws").mkdir()
    opened = open_workspace(tmp_path / "ws", spool=tmp_path / "spool")
    yield opened
    await opened.close()


def hook(workspace: Workspace, command: str, event: HookEvent = PRE, *, arguments: Any = None) -> CommandHook:
    place = HookPlace(
        launcher=lambda: workspace.launcher,
        confine=None,
        logs=LogPlaces(workspace.root, Path(workspace.root).parent / "people" / ".claude"),
        private=Path(workspace.root).parent / "private",
        root=workspace.root,
        session_id="s1",
        tell=lambda text: None,
        files=HookFiles(Path(workspace.root), ()),
    )
    return CommandHook(HookSpec(event=event, command=command, arguments=arguments), place)


async def answer(
    workspace: Workspace, command: str, event: HookEvent = PRE, *, arguments: Any = None
) -> dict[str, Any]:
    found = await hook(workspace, command, event, arguments=arguments)(GIVEN)
    assert found == HookAnswer(objects=found.objects, alone=found.alone)
    return found.objects[0] if found.objects else {}


async def failure(workspace: Workspace, command: str) -> str:
    try:
        why = (await hook(workspace, command)(GIVEN)).unread
    except HookFailedError as error:
        why = str(error)
    assert list((Path(workspace.root).parent / "private").iterdir()) == []
    return why


async def test_it_reads_the_event_and_its_surroundings_and_prints_an_answer(workspace: Workspace) -> None:
    line = (
        'read -r all; printf \'{"systemMessage": "%s %s %s %s %s", "all": %s}\' '
        '"$PWD" "$CLAUDE_PROJECT_DIR" "$CLAUDE_CODE_SESSION_ID" "$CLAUDECODE" "$TREADLE_SESSION_ID" "$all"; '
        "echo noise >&2"
    )
    root = workspace.root
    assert await answer(workspace, line) == {"systemMessage": f"{root} {root} s1 1 s1", "all": GIVEN}
    assert list((Path(root).parent / "private").iterdir()) == []


async def test_the_form_with_arguments_has_no_shell_between(workspace: Workspace) -> None:
    program = "import json, sys; json.load(sys.stdin); print(json.dumps({'reason': sys.argv[1]}))"
    found = await answer(workspace, sys.executable, arguments=("-c", program, "$HOME; a 'b'"))
    assert found == {"reason": "$HOME; a 'b'"}


async def test_exit_status_2_blocks_with_what_was_printed_as_error(workspace: Workspace) -> None:
    assert await answer(workspace, "echo '{}'; echo 'Not on Friday.' >&2; exit 2") == {
        "decision": "block",
        "reason": "Not on Friday.",
    }
    assert await answer(workspace, "exit 2") == {"decision": "block", "reason": "The hook `exit 2` blocks it."}


async def test_plain_words_are_context_where_that_is_wanted(workspace: Workspace) -> None:
    assert await answer(workspace, "echo hello") == {}
    found = await answer(workspace, "echo hello", HookEvent.USER_PROMPT_SUBMIT)
    assert found == {"hookSpecificOutput": {"additionalContext": "hello"}}


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("echo oops >&2; exit 1", "exit status 1: oops"),
        ("kill -9 $$", "killed by SIGKILL, by a program: the kernel ended none for want of memory"),
        ("nowhere-to-be-found", "exit status 127"),
        ("printf '{\"a\": '", "it printed broken JSON"),
        ("head -c 10000000 /dev/zero | tr '\\0' x", "it printed more than 1,048,576 bytes"),
        ("printf '{'; head -c 10000000 /dev/zero", "it printed more than 1,048,576 bytes"),
        ("x\0y", "NUL byte"),
    ],
)
async def test_what_goes_wrong_is_a_failure_that_says_so(workspace: Workspace, command: str, why: str) -> None:
    assert why in await failure(workspace, command)


async def test_bytes_that_are_no_text_do_no_harm(workspace: Workspace) -> None:
    assert await answer(workspace, r"printf '\xff\xfe\x00'") == {}
    found = await answer(workspace, r"""printf '{"reason": "a\xffb"}'""")
    assert found == {"reason": "a\ufffdb"}
    blocked = await answer(workspace, r"printf 'a\xffb' >&2; exit 2")
    assert blocked == {"decision": "block", "reason": "a\ufffdb"}


async def test_a_child_that_holds_the_output_open_is_ended_with_the_hook(workspace: Workspace) -> None:
    marker = "987654.25"
    found = await answer(workspace, f'sleep {marker} & setsid sleep {marker} & echo \'{{"reason": "done"}}\'')
    assert found == {"reason": "done"}
    assert left_of(f"sleep {marker}") == []


async def test_a_hook_that_is_cancelled_leaves_nothing_running(workspace: Workspace) -> None:
    marker, began = "987655.25", Path(workspace.root) / "began"
    run = asyncio.ensure_future(hook(workspace, f"trap '' TERM; touch began; sleep {marker}; sleep {marker}")(GIVEN))
    while not began.exists():
        await asyncio.sleep(0.01)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert left_of(f"sleep {marker}") == []
    assert list((Path(workspace.root).parent / "private").iterdir()) == []


async def test_half_a_character_does_no_harm(workspace: Workspace) -> None:
    line = 'printf \'{"reason": "%s"}\' "$(wc -c)"'
    given = {"prompt": "\ud800"}
    assert await hook(workspace, line)(given) == HookAnswer(objects=({"reason": str(len(json.dumps(given)))},))


async def test_a_large_event_arrives_whole(workspace: Workspace) -> None:
    given = {"tool_input": {"content": "x" * 5_000_000}}
    line = 'printf \'{"reason": "%s"}\' "$(wc -c)"'
    found = await hook(workspace, line)(given)
    assert int(found.objects[0]["reason"]) == len(json.dumps(given))


async def test_a_hook_that_fails_may_still_have_forbidden_it(workspace: Workspace) -> None:
    found = await hook(workspace, """echo 'starting'; echo '{"decision": "block", "reason": "No."}'; exit 1""")(GIVEN)
    assert found == HookAnswer(objects=({"decision": "block", "reason": "No."},), unread="exit status 1", alone=False)

"""The hooks of one session: whom a call concerns, what is put together, and what a slow or broken hook means."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from treadle.app.config.hook_settings import HookEvent, HookOrigin
from treadle.app.hooks.hook_rows import HookAnswer, HookFailedError, HookHandler, HookRow
from treadle.app.hooks.sending import heard_op
from treadle.app.hooks.session_hooks import HookSession, SessionHooks
from treadle.engine.ports import HookDecision, HookWord
from treadle.protocol.attach import SessionStatus
from treadle.protocol.errors import RefusedError
from treadle.protocol.events import Prompt, Source
from treadle.protocol.messages import Text
from treadle.protocol.models import ToolProtocol
from treadle.protocol.notifications import Phase
from treadle.protocol.permissions import Decision, Mode, Verdict
from treadle.protocol.tools import CallResult, Outcome, Risk, ToolCall, result_text

PRE = HookEvent.PRE_TOOL_USE
LIST = ToolCall(id="c1", name="execute_command", arguments={"command": "ls", "timeout": 5})
EDIT = "------- SEARCH\na\n=======\nb\n+++++++ REPLACE"


class Recorded:
    """A hook that keeps what it is given and answers with the same each time."""

    def __init__(self, answer: dict[str, Any] | None = None) -> None:
        self.given: list[dict[str, Any]] = []
        self._answer = answer or {}

    async def __call__(self, given: dict[str, Any]) -> HookAnswer:
        self.given.append(given)
        return HookAnswer(objects=(self._answer,))


def said(**fields: Any) -> Recorded:
    return Recorded({"hookSpecificOutput": fields})


def hooks(*rows: HookRow, told: list[str] | None = None) -> SessionHooks:
    session = HookSession(
        session_id="s1", root="/ws", mode=lambda: Mode.EDITS, redact=lambda text: text.replace("SECRET", "[hidden]")
    )
    made = SessionHooks(rows, session)
    if told is not None:
        made.tell = told.append
    return made


def row(handler: HookHandler, event: HookEvent = PRE, matcher: str = "", **more: Any) -> HookRow:
    return HookRow(event=event, handler=handler, matcher=matcher, name="`check`", **more)


async def test_the_log_names_the_hook_that_decided_with_its_file() -> None:
    deny = said(permissionDecision="deny", permissionDecisionReason="No.")
    word = await hooks(row(deny, place="/h/config.toml")).before_call(LIST)
    assert word == HookWord(decision=HookDecision.DENY, reason="No.", by="PreToolUse hook `check` (/h/config.toml)")


async def test_many_slow_hooks_that_look_on_hold_up_none_that_decides() -> None:
    slow = [row(forever, HookEvent.POST_TOOL_USE, detached=True) for _ in range(20)]
    made = hooks(*slow, row(said(permissionDecision="deny")))
    await made.after_call(LIST, result_text(Outcome.OK, "out"))
    assert (await made.before_call(LIST)).decision is HookDecision.DENY
    await made.end()


async def test_a_hook_for_claude_code_sees_the_call_under_its_name_there() -> None:
    bash = Recorded()
    assert await hooks(row(bash, matcher="Bash")).before_call(LIST) == HookWord()
    assert bash.given == [
        {
            "session_id": "s1",
            "transcript_path": "",
            "cwd": "/ws",
            "hook_event_name": "PreToolUse",
            "permission_mode": "acceptEdits",
            "tool_name": "Bash",
            "tool_input": {"command": "ls", "timeout": 5000},
            "tool_use_id": "c1",
            "treadle_tool_name": "execute_command",
        }
    ]


async def test_a_hook_may_also_name_our_tool_and_sees_our_arguments() -> None:
    own = Recorded()
    await hooks(row(own, matcher="execute_command")).before_call(LIST)
    (given,) = own.given
    assert (given["tool_name"], given["tool_input"]) == ("execute_command", {"command": "ls", "timeout": 5})


async def test_other_tools_do_not_reach_a_hook() -> None:
    other = Recorded()
    await hooks(row(other, matcher="Edit|Write")).before_call(LIST)
    assert other.given == []


async def test_each_file_of_a_patch_is_judged() -> None:
    patch = "*** Begin Patch\n*** Add File: a.py\n+x\n*** Add File: b.py\n+y\n*** End Patch"
    call = ToolCall(id="c2", name="apply_patch", arguments={"patch": patch})
    seen = Recorded()
    await hooks(row(seen, matcher="Write")).before_call(call)
    assert [given["tool_input"]["file_path"] for given in seen.given] == ["/ws/a.py", "/ws/b.py"]
    amending = said(updatedInput={"file_path": "/ws/c.py", "content": "z"})
    word = await hooks(row(amending, matcher="Write")).before_call(call)
    assert word.decision is HookDecision.DENY
    assert "changes one part of a call" in word.reason


async def test_other_arguments_come_back_as_ours() -> None:
    word = await hooks(row(said(updatedInput={"command": "ls -l", "timeout": 9000}))).before_call(LIST)
    assert word == HookWord(arguments={"command": "ls -l", "timeout": 9})
    same = await hooks(row(said(updatedInput={"command": "ls", "timeout": 5000}))).before_call(LIST)
    assert same == HookWord()
    broken = await hooks(row(said(updatedInput={"command": 5}))).before_call(LIST)
    assert broken.decision is HookDecision.DENY
    assert "updatedInput cannot be used" in broken.reason


async def test_deny_beats_allow_and_secrets_are_hidden_in_what_hooks_say() -> None:
    deny = said(permissionDecision="deny", permissionDecisionReason="SECRET is in it", additionalContext="SECRET")
    word = await hooks(row(said(permissionDecision="allow")), row(deny)).before_call(LIST)
    assert word == HookWord(
        decision=HookDecision.DENY, reason="[hidden] is in it", by="PreToolUse hook `check`", context="[hidden]"
    )


async def test_two_that_change_one_call_are_said_and_the_last_applies() -> None:
    told: list[str] = []
    two = [row(said(updatedInput={"command": line})) for line in ("pwd", "id")]
    word = await hooks(*two, told=told).before_call(LIST)
    assert word.arguments == {"command": "id"}
    assert told == ["Two hooks change the input of the same call: the last one applies."]


async def forever(given: dict[str, Any]) -> HookAnswer:
    await asyncio.Event().wait()
    return HookAnswer()


async def broken(given: dict[str, Any]) -> HookAnswer:
    raise HookFailedError("it is broken")


@pytest.mark.parametrize(("handler", "why"), [(forever, "it took longer than 0.01 s"), (broken, "it is broken")])
async def test_a_policy_hook_that_gives_no_answer_blocks_unless_it_says_otherwise(
    handler: HookHandler, why: str
) -> None:
    word = await hooks(row(handler, timeout=0.01)).before_call(LIST)
    reason = f"The PreToolUse hook `check` failed: {why}."
    assert word == HookWord(decision=HookDecision.DENY, reason=reason, by="PreToolUse hook `check`")
    told: list[str] = []
    assert await hooks(row(handler, timeout=0.01, on_failure="continue"), told=told).before_call(LIST) == HookWord()
    assert told == [reason]


async def test_a_hook_that_only_looks_on_fails_with_a_notice() -> None:
    told: list[str] = []
    made = hooks(row(broken, HookEvent.POST_TOOL_USE), row(broken, HookEvent.STOP), told=told)
    assert await made.after_call(LIST, result_text(Outcome.OK, "out")) == HookWord()
    assert await made.before_end("Done.", again=False) == HookWord()
    assert told == [f"The {event} hook `check` failed: it is broken." for event in ("PostToolUse", "Stop")]


async def test_after_a_call_its_output_is_given_and_replaced() -> None:
    post = said(updatedToolOutput="less", additionalContext="Mind the gap.")
    word = await hooks(row(post, HookEvent.POST_TOOL_USE, "Bash")).after_call(LIST, result_text(Outcome.OK, "out"))
    assert word == HookWord(output="less", context="Mind the gap.")
    assert post.given[0]["tool_response"] == {"content": "out", "stdout": "out"}


async def test_a_failed_call_has_an_event_of_its_own_and_one_that_did_not_run_has_none() -> None:
    fine, failed = Recorded(), Recorded()
    made = hooks(row(fine, HookEvent.POST_TOOL_USE), row(failed, HookEvent.POST_TOOL_USE_FAILURE))
    await made.after_call(LIST, result_text(Outcome.FAILED, "bad"))
    await made.after_call(LIST, CallResult(outcome=Outcome.INTERRUPTED, content=(Text(text="cut"),)))
    await made.after_call(LIST, result_text(Outcome.DENIED, "no"))
    assert [(one["error"], one["is_interrupt"]) for one in failed.given] == [("bad", False), ("cut", True)]
    assert fine.given == []


async def test_a_question_can_be_answered_by_the_user_s_hook_and_not_by_a_folder_s() -> None:
    allow = {"hookSpecificOutput": {"decision": {"behavior": "allow"}}}
    decision = Decision(verdict=Verdict.REQUIRE_USER_CONFIRMATION, risk=Risk.EXECUTE)
    event = HookEvent.PERMISSION_REQUEST
    user = await hooks(row(Recorded(allow), event, origin=HookOrigin.USER)).permission(LIST, decision)
    assert user.decision is HookDecision.ALLOW
    folder = await hooks(row(Recorded(allow), event, origin=HookOrigin.FOLDER)).permission(LIST, decision)
    assert folder == HookWord()


async def test_the_start_of_a_session_speaks_with_the_first_prompt_only() -> None:
    start, prompt = said(additionalContext="From the start."), said(additionalContext="With the prompt.")
    made = hooks(row(start, HookEvent.SESSION_START, "startup"), row(prompt, HookEvent.USER_PROMPT_SUBMIT))
    made.begin(resumed=False, model="a/b")
    assert (await made.on_prompt("Hi.")).context == "From the start.\n\nWith the prompt."
    assert (await made.on_prompt("More.")).context == "With the prompt."
    assert [(one["source"], one["model"]) for one in start.given] == [("startup", "a/b")]
    assert [one["prompt"] for one in prompt.given] == ["Hi.", "More."]


async def test_a_first_prompt_that_a_hook_keeps_back_does_not_lose_what_the_start_said() -> None:
    start, once = said(additionalContext="From the start."), Recorded({"decision": "block"})
    made = hooks(row(start, HookEvent.SESSION_START), row(once, HookEvent.USER_PROMPT_SUBMIT, once=True))
    made.begin(resumed=False, model="a/b")
    assert (await made.on_prompt("Hi.")).decision is HookDecision.DENY
    assert await made.on_prompt("Hello.") == HookWord(context="From the start.")


@pytest.mark.parametrize("answer", [{"decision": "ask"}, {"decision": "block"}, {"continue": False}])
async def test_a_prompt_that_a_hook_does_not_let_pass_is_kept_back(answer: dict[str, Any]) -> None:
    made = hooks(row(Recorded(answer), HookEvent.USER_PROMPT_SUBMIT))
    prompt, status = (
        Prompt(id="p", content=(Text(text="Hi."),)),
        SessionStatus(
            phase=Phase.WAITING_FOR_EVENT,
            mode=Mode.ASK,
            model="a/b",
            tool_protocol=ToolProtocol.NATIVE,
            turn_active=False,
        ),
    )
    with pytest.raises(RefusedError) as raised:
        await heard_op(made, prompt, Source(kind="tui", id="1"), status=status, tell=made.tell)
    assert raised.value.what == "A hook kept the message from being sent."
    assert raised.value.why in str(raised.value)


async def test_many_detached_hooks_hold_up_none_that_somebody_waits_for() -> None:
    slow = [row(forever, HookEvent.POST_TOOL_USE, detached=True) for _ in range(20)]
    told = Recorded({"decision": "block", "reason": "Go on."})
    made = hooks(*slow, row(told, HookEvent.STOP, timeout=1), row(told, HookEvent.SESSION_END))
    await made.after_call(LIST, result_text(Outcome.OK, "out"))
    assert (await made.before_end("Done.", again=False)).reason == "Go on."
    await made.end()
    assert [one["hook_event_name"] for one in told.given] == ["Stop", "SessionEnd"]


async def test_once_is_once_and_nobody_waits_for_what_is_detached_but_where_it_decides() -> None:
    once, slow = Recorded(), row(forever, HookEvent.POST_TOOL_USE, detached=True)
    made = hooks(row(once, once=True), slow, row(broken, detached=True, matcher="Read"))
    for _ in range(3):
        await made.before_call(LIST)
    assert len(once.given) == 1
    assert await made.after_call(LIST, result_text(Outcome.OK, "out")) == HookWord()
    read = ToolCall(id="c3", name="read_file", arguments={"path": "a"})
    assert (await made.before_call(read)).decision is HookDecision.DENY
    await made.end()
    assert [task for task in asyncio.all_tasks() if task.get_name() == "hook"] == []


async def test_the_end_of_a_session_does_not_wait_long() -> None:
    told: list[str] = []
    made = hooks(row(forever, HookEvent.SESSION_END, timeout=0.01), row(forever, HookEvent.SESSION_START), told=told)
    made.begin(resumed=True, model="a/b")
    await made.end()
    assert told == ["The SessionEnd hook `check` failed: it took longer than 0.01 s."]


async def test_an_interrupt_ends_the_hooks_of_the_moment() -> None:
    ended: list[str] = []

    async def slow(given: dict[str, Any]) -> HookAnswer:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("ended")
        return HookAnswer()

    waiting = asyncio.ensure_future(hooks(row(slow), row(slow)).before_call(LIST))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert ended == ["ended", "ended"]


async def test_a_hook_that_edits_the_file_it_judges_does_not_change_what_it_judges(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("a")

    async def edit(given: dict[str, Any]) -> HookAnswer:
        Path(given["tool_input"]["file_path"]).write_text("changed")
        given["tool_input"]["file_path"] = "/etc/passwd"
        return HookAnswer()

    call = ToolCall(id="c4", name="replace_in_file", arguments={"path": str(file), "diff": EDIT})
    assert await hooks(row(edit, matcher="Edit")).before_call(call) == HookWord()
    assert call.arguments == {"path": str(file), "diff": EDIT}

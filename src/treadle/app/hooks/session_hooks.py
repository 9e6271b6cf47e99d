"""The hooks of one session: which of them each moment runs, and what they say together."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from treadle.app.config.foreign_tools import ClaudeCall, amended_arguments, claude_call, claude_calls
from treadle.app.config.hook_settings import POLICY_EVENTS, HookEvent
from treadle.app.hooks.hook_changes import AroundHooks, nothing_around
from treadle.app.hooks.hook_rows import HookFailedError, HookRow
from treadle.app.hooks.hook_words import (
    NO_WORD,
    changes_twice,
    failed_word,
    heard_answer,
    keeps_back,
    merged_word,
    with_context,
)
from treadle.app.hooks.matching_hooks import condition_holds, matches_any
from treadle.engine.ports import HookDecision, HookWord
from treadle.present.question_words import in_short
from treadle.protocol.errors import TreadleError
from treadle.protocol.messages import Text
from treadle.protocol.permissions import Decision, Mode, Question
from treadle.protocol.reasons import words_of_decision
from treadle.protocol.tools import CallResult, Outcome, ToolCall
from treadle.tools.declarations import EXECUTE_COMMAND

_AT_ONCE = 8
_LAST_SECONDS = 3.0
_NOT_RUN = frozenset({Outcome.DENIED, Outcome.REJECTED, Outcome.SKIPPED, Outcome.INVALID})
_LOOKING_ON = frozenset(
    {
        HookEvent.PERMISSION_DENIED,
        HookEvent.STOP_FAILURE,
        HookEvent.PRE_COMPACT,
        HookEvent.POST_COMPACT,
        HookEvent.POST_MODEL_SWITCH,
        HookEvent.POST_TOOL_BATCH,
        HookEvent.ELICITATION,
        HookEvent.CONFIG_CHANGE,
        HookEvent.NOTIFICATION,
    }
)
"""Moments that do not wait for their hooks."""

_SCOPES = {"admin": "policy_settings", "user": "user_settings", "project": "project_settings"}
"""What Claude Code calls those who write rule files."""

_MODES = {Mode.ASK: "default", Mode.EDITS: "acceptEdits", Mode.FULL: "bypassPermissions"}
"""What Claude Code calls modes that it has under another name."""


class HookSession(Struct, frozen=True, kw_only=True):
    """What hooks learn of their session; `redact` hides secrets in what they say.

    `focus` is what a person who has room made now wants kept above all; None where nobody asked for that.
    """

    session_id: str
    root: str
    mode: Callable[[], Mode]
    redact: Callable[[str], str] = str
    focus: Callable[[], str | None] = lambda: None


class _Run(Struct, frozen=True):
    """One hook, the event as it is given to it, and the call that it is about; `aside`: what that changed waits."""

    row: HookRow
    given: dict[str, Any]
    call: ToolCall | None = None
    single: bool = True
    aside: bool = False


class SessionHooks:
    """Runs the hooks of a session. Those of one moment run side by side; a moment that has none costs nothing.

    `notices` say which do not run; `tell` brings a line to the person while the session is open.
    """

    def __init__(self, rows: Sequence[HookRow], session: HookSession, notices: Sequence[str] = ()) -> None:
        self.notices = tuple(notices)
        self.tell: Callable[[str], None] = lambda text: None  # noqa: ARG005 - nobody is there yet
        self._rows = tuple(rows)
        self._session = session
        self._done: set[int] = set()
        self._detached: set[asyncio.Task[HookWord]] = set()
        self._room, self._room_beside = asyncio.Semaphore(_AT_ONCE), asyncio.Semaphore(_AT_ONCE)
        self._begun: asyncio.Task[str] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._around: AroundHooks = nothing_around

    @property
    def may_answer(self) -> bool:
        """Whether one of them may say yes to a call in the user's place."""
        return any(row.event in (HookEvent.PRE_TOOL_USE, HookEvent.PERMISSION_REQUEST) for row in self._rows)

    def work_within(self, around: AroundHooks) -> None:
        """Go from now on around the hooks that may change files."""
        self._around = around

    def tell_through(self, tell: Callable[[str], None]) -> None:
        """Say from now on to `tell` what a person should know, beginning with what is known already."""
        self.tell, self._loop = tell, asyncio.get_running_loop()
        for notice in self.notices:
            tell(notice)

    async def before_call(self, call: ToolCall) -> HookWord:
        """PreToolUse."""
        return await self._ask(list(self._about_call(HookEvent.PRE_TOOL_USE, call, {})))

    async def permission(self, call: ToolCall, decision: Decision) -> HookWord:
        """PermissionRequest: the call would be asked about."""
        words = words_of_decision(decision)
        more = {"permission_suggestions": [], "reasons": [words.headline, *words.further]}
        return await self._ask(list(self._about_call(HookEvent.PERMISSION_REQUEST, call, more)))

    async def after_call(self, call: ToolCall, result: CallResult) -> HookWord:
        """PostToolUse, or PostToolUseFailure; nothing for a call that did not run.

        Where changes wait in a throw-away copy, the workspace stays as it was: they are applied to that alone.
        """
        if result.outcome in _NOT_RUN:
            return NO_WORD
        aside = result.copy is not None and bool(result.copy.changes or result.copy.outputs)
        text = "\n".join(block.text for block in result.content if isinstance(block, Text))
        if result.is_error:
            more: dict[str, Any] = {"error": text, "is_interrupt": result.outcome is Outcome.INTERRUPTED}
            runs = self._about_call(HookEvent.POST_TOOL_USE_FAILURE, call, more)
            return await self._ask([replace(run, aside=aside) for run in runs])
        response = {"content": text, "stdout": text} if call.name == EXECUTE_COMMAND.name else {"content": text}
        runs = self._about_call(HookEvent.POST_TOOL_USE, call, {"tool_response": response})
        return await self._ask([replace(run, aside=aside) for run in runs])

    async def before_model(self, before: str, wanted: str, *, source: str, tokens: int) -> HookWord:
        """PreModelSwitch: somebody chose another model; `tokens` are what the next request sends."""
        models = {"from_model": before, "to_model": wanted, "requested_model": wanted, "model": wanted}
        more = {**models, "source": source, "context_tokens": tokens}
        return await self._ask(list(self._about(HookEvent.PRE_MODEL_SWITCH, wanted, more)))

    async def after_batch(self, calls: Sequence[tuple[ToolCall, CallResult]]) -> None:
        """PostToolBatch: all calls of a step are over."""
        more = {"tool_calls": [self._shown(call, result) for call, result in calls]}
        await self._ask(list(self._about(HookEvent.POST_TOOL_BATCH, "", more)))

    def _shown(self, call: ToolCall, result: CallResult) -> dict[str, Any]:
        shown = claude_call(call.name, call.arguments, self._session.root)
        text = "\n".join(block.text for block in result.content if isinstance(block, Text))
        said = {"tool_name": shown.name, "tool_input": shown.input, "tool_use_id": call.id}
        return {**said, "tool_response": {"content": text}, "treadle_tool_name": call.name}

    def rules_changed(self, file: Path, scope: str) -> None:
        """ConfigChange: a rule file is another than it was. May be called in any thread."""
        if self._loop is not None:
            with suppress(RuntimeError):  # the program ends
                self._loop.call_soon_threadsafe(self._tell_changed, file, scope)

    def _tell_changed(self, file: Path, scope: str) -> None:
        more = {"source": _SCOPES[scope], "file_path": str(file)}
        for run in self._about(HookEvent.CONFIG_CHANGE, more["source"], more):
            self._detach(run)

    def question(self, question: Question) -> str:
        """Say for Notification what is asked, without secrets: hooks pass it on to other places."""
        short = in_short(question)
        return self._session.redact(f"{short[:1].upper()}{short[1:]}?")

    def compaction(self) -> dict[str, str]:
        """Say for PreCompact who has room made now, and what is to be kept."""
        focus = self._session.focus()
        return {"trigger": "auto" if focus is None else "manual", "custom_instructions": focus or ""}

    async def before_end(self, text: str, *, again: bool) -> HookWord:
        """Stop: a turn is about to end with this answer; `again`: a hook has kept it from ending before."""
        more = {"stop_hook_active": again, "last_assistant_message": text}
        return await self._ask(list(self._about(HookEvent.STOP, "", more)))

    async def on_prompt(self, text: str) -> HookWord:
        """UserPromptSubmit; what the start of the session said goes along with the first prompt."""
        begun, self._begun = self._begun, None
        context = "" if begun is None else await begun
        word = await self._ask(list(self._about(HookEvent.USER_PROMPT_SUBMIT, "", {"prompt": text})))
        if keeps_back(word):
            self._begun = begun  # it goes along with the first one that is sent
        return with_context(word, context)

    def begin(self, *, resumed: bool, model: str) -> None:
        """SessionStart; its context waits for the first prompt."""
        source = "resume" if resumed else "startup"
        runs = list(self._about(HookEvent.SESSION_START, source, {"source": source, "model": model}))
        if runs:
            self._begun = asyncio.create_task(self._context_of(runs), name="session start hooks")

    async def _context_of(self, runs: Sequence[_Run]) -> str:
        return (await self._ask(runs)).context

    async def notice(self, event: HookEvent, matched: str, more: Mapping[str, Any]) -> None:
        """Run the hooks of a moment that waits for no word; `matched` is what their matchers are about."""
        await self._ask(list(self._about(event, matched, more)))

    async def call_denied(self, call: ToolCall, reason: str) -> None:
        """PermissionDenied."""
        await self._ask(list(self._about_call(HookEvent.PERMISSION_DENIED, call, {"reason": reason})))

    async def end(self) -> None:
        """SessionEnd, within seconds; then nothing of any hook runs any more."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_LAST_SECONDS):
                await self.notice(HookEvent.SESSION_END, "other", {"reason": "other"})
        left = [*self._detached, *([] if self._begun is None else [self._begun])]
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    def _about_call(self, event: HookEvent, call: ToolCall, more: Mapping[str, Any]) -> Iterator[_Run]:
        """Give each hook the call under the name that it matches: ours, or the one that Claude Code has for it."""
        rows = [row for row in self._rows if row.event == event]
        if not rows:
            return
        foreign = claude_calls(call.name, call.arguments, self._session.root)
        own = ClaudeCall(name=call.name, input=call.arguments)
        for row in rows:
            shown = [one for one in foreign if matches_any(row.matcher, (one.name,))]
            if not shown and matches_any(row.matcher, (call.name,)):
                shown = [own]
            for one in shown:
                if row.condition and not condition_holds(row.condition, (one.name, call.name), one.input):
                    continue
                said = {"tool_name": one.name, "tool_input": one.input, "tool_use_id": call.id}
                given = {**self._given(event), **said, "treadle_tool_name": call.name, **more}
                yield _Run(row, given, call, len(shown) == 1)

    def _about(self, event: HookEvent, matched: str, more: Mapping[str, Any]) -> Iterator[_Run]:
        for row in self._rows:
            if row.event == event and (not matched or matches_any(row.matcher, (matched,))):
                yield _Run(row, {**self._given(event), **more})

    def _given(self, event: HookEvent) -> dict[str, Any]:
        session = self._session
        mode = session.mode()
        return {
            "session_id": session.session_id,
            "transcript_path": "",
            "cwd": session.root,
            "hook_event_name": event.value,
            "permission_mode": _MODES.get(mode, mode.value),
        }

    async def _ask(self, runs: Sequence[_Run]) -> HookWord:
        """Run hooks side by side and put together what they say."""
        wanted = [run for run in runs if not self._was_done(run.row)]
        if not wanted:
            return NO_WORD
        waited = []
        for run in wanted:
            if run.row.detached and run.row.event not in POLICY_EVENTS:
                self._detach(run)
            else:
                waited.append(run)
        changing = any(run.row.changes_files for run in waited)
        beside = any(run.row.event in _LOOKING_ON for run in waited)
        async with self._around(not beside) if changing else nullcontext():
            words = await asyncio.gather(*map(self._one, waited))
        if changes_twice(words):
            self.tell("Two hooks change the input of the same call: the last one applies.")
        return merged_word(words)

    def _was_done(self, row: HookRow) -> bool:
        if not row.once:
            return False
        done = id(row) in self._done
        self._done.add(id(row))
        return done

    def _detach(self, run: _Run) -> None:
        task = asyncio.create_task(self._one_beside(run), name="hook")
        self._detached.add(task)
        task.add_done_callback(self._detached.discard)

    async def _one_beside(self, run: _Run) -> HookWord:
        async with self._around(False) if run.row.changes_files else nullcontext():
            return await self._one(run)

    async def _one(self, run: _Run) -> HookWord:
        """Run one hook; what goes wrong with it becomes its word, and is said."""
        row = run.row
        # What nobody waits for, perhaps for long, holds up nothing else.
        beside = row.event in _LOOKING_ON or (row.detached and row.event not in POLICY_EVENTS)
        room = self._room_beside if beside else self._room
        try:
            async with room, asyncio.timeout(row.seconds):
                answer = await (row.aside if run.aside and row.aside else row.handler)(run.given)
            heard = heard_answer(row, answer)
            word = self._judged(run, heard.word)
        except TimeoutError:
            return self._failed(row, f"it took longer than {row.seconds:g} s")
        except HookFailedError as error:
            return self._failed(row, str(error))
        except TreadleError as error:  # a host that has gone
            return self._failed(row, error.what.rstrip("."))
        said = (one.get("systemMessage") for one in answer.objects)
        for text in (heard.notice, *(one.strip() for one in said if isinstance(one, str))):
            if text:
                self.tell(self._session.redact(text))
        word = self._redacted(word)
        if not heard.problem or (word.decision is HookDecision.DENY and row.blocks):
            return word
        return merged_word((word, self._failed(row, heard.problem)))

    def _judged(self, run: _Run, word: HookWord) -> HookWord:
        """Turn other arguments into ours. Raises `HookFailedError`."""
        if word.arguments is None or run.call is None:
            return word
        if not run.single:
            raise HookFailedError("it changes one part of a call that does several things")
        call = run.call
        try:
            own = amended_arguments(call.name, call.arguments, word.arguments, self._session.root)
        except ValueError as error:
            raise HookFailedError(f"its updatedInput cannot be used ({error})") from error
        return replace(word, arguments=own)

    def _failed(self, row: HookRow, why: str) -> HookWord:
        why = self._session.redact(why)
        word = failed_word(row, why)
        if word is NO_WORD:
            self.tell(f"The {row.shown} failed: {why}.")
        return word

    def _redacted(self, word: HookWord) -> HookWord:
        redact = self._session.redact
        return replace(
            word,
            reason=redact(word.reason),
            context=redact(word.context),
            output=None if word.output is None else redact(word.output),
            stop=None if word.stop is None else redact(word.stop),
        )

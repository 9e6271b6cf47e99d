"""What hooks say, read from their answers and put together: pure."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from treadle.app.config.hook_settings import POLICY_EVENTS, HookEvent, HookOrigin
from treadle.app.hooks.hook_answers import misplaced
from treadle.app.hooks.hook_rows import HookAnswer, HookFailedError, HookRow
from treadle.engine.ports import HookDecision, HookWord

NO_WORD = HookWord()
_MOST_CONTEXT = 10_000
"""Characters that the model reads of what one hook says."""
_STRICT = (HookDecision.NONE, HookDecision.ALLOW, HookDecision.ASK, HookDecision.DENY)
"""The mildest first."""

_WORDS = {
    **dict.fromkeys(("allow", "approve"), HookDecision.ALLOW),
    **dict.fromkeys(("ask", "defer"), HookDecision.ASK),
    **dict.fromkeys(("deny", "block"), HookDecision.DENY),
}
_DECIDING = frozenset({HookEvent.PRE_TOOL_USE, HookEvent.PERMISSION_REQUEST, HookEvent.PRE_MODEL_SWITCH})
_STOPPED = "A hook ended the turn."
_BESIDE = "it printed other text beside its answer, so its updatedInput is not used"


class HeardAnswer(Struct, frozen=True, kw_only=True):
    """What one hook says; `problem` is what of its answer cannot be used, `notice` a yes that does not apply."""

    word: HookWord
    problem: str = ""
    notice: str = ""


def heard_answer(row: HookRow, answer: HookAnswer) -> HeardAnswer:
    """Read all that a hook answers: of several decisions the strictest applies, and with a problem no yes does."""
    words, problem = [], answer.unread
    for one in answer.objects:
        try:
            words.append(word_of(row, one))
        except HookFailedError as error:
            problem = problem or str(error)
    word = merged_word(words)
    decides = row.event in POLICY_EVENTS
    if changes_twice(words):
        problem = problem or "it changes the input of one call in two ways"
    if decides and not answer.alone and word.arguments is not None:
        problem = problem or _BESIDE
    beside = decides and not answer.alone
    unheard = beside and word.decision is HookDecision.ALLOW and not problem
    if problem or beside:
        # Plain words are context at a prompt anyway; elsewhere what is in them may be the words of anybody.
        word = _only_strict(word, with_context=not problem and row.event == HookEvent.USER_PROMPT_SUBMIT)
    if answer.stopped:
        problem = f"{problem}. {answer.stopped.rstrip('.')}" if problem else ""
        if word.decision in (HookDecision.DENY, HookDecision.ASK):
            word = replace(word, reason=" ".join(filter(None, (word.reason, answer.stopped))))
    notice = f"The {row.shown} printed other text beside its answer, so its yes does not apply." if unheard else ""
    return HeardAnswer(word=word, problem=problem, notice=notice)


def _only_strict(word: HookWord, *, with_context: bool) -> HookWord:
    """Leave of a word what forbids, asks or ends."""
    strict = word.decision in (HookDecision.DENY, HookDecision.ASK)
    return HookWord(
        decision=word.decision if strict else HookDecision.NONE,
        reason=word.reason if strict else "",
        by=word.by if strict or word.stop is not None else "",
        context=word.context if with_context else "",
        stop=word.stop,
    )


def word_of(row: HookRow, answer: Mapping[str, Any]) -> HookWord:
    """Read a hook's answer; its arguments are as the hook saw them. Raises `HookFailedError` for what is none.

    Only what belongs to the user may answer a question in the user's place: an `allow` of a folder says nothing.
    """
    if row.event in POLICY_EVENTS:
        if place := misplaced(answer, row.event):
            raise HookFailedError(f"its {place} is not where a {row.event} hook decides")
        if not isinstance(answer.get("continue", True), bool):
            raise HookFailedError(f"its continue is {answer['continue']!r}, not true or false")
    specific = _table(answer.get("hookSpecificOutput"), "hookSpecificOutput")
    named = specific.get("hookEventName", row.event)
    if named != row.event:
        raise HookFailedError(f"it answered for {named!r}")
    decision, reason, arguments, stop = _decided(row, answer, specific)
    if decision is HookDecision.ALLOW and row.origin is HookOrigin.FOLDER:
        decision, reason = HookDecision.NONE, ""
    if row.event == HookEvent.PERMISSION_REQUEST and decision is not HookDecision.ALLOW:
        arguments = None
    if answer.get("continue") is False:
        stop = _text(answer, "stopReason") or _STOPPED
    context = bounded_context(_text(specific, "additionalContext"))
    if row.event in (HookEvent.POST_TOOL_USE, HookEvent.POST_TOOL_USE_FAILURE) and decision is HookDecision.DENY:
        # The call has run: what is left to do is that the model reads why it was wrong.
        context, decision, reason = "\n\n".join(filter(None, (reason, context))), HookDecision.NONE, ""
    said = decision is not HookDecision.NONE or stop is not None
    return HookWord(
        decision=decision,
        reason=reason,
        by=row.by if said else "",
        arguments=arguments,
        context=context,
        output=_output(specific),
        stop=stop,
    )


def bounded_context(text: str) -> str:
    """Give what of a hook's words the model reads: their beginning, and how much was left out."""
    left = len(text) - _MOST_CONTEXT
    return text if left <= 0 else f"{text[:_MOST_CONTEXT]}\n[{left:,} characters more were left out.]"


_Decided = tuple[HookDecision, str, dict[str, Any] | None, str | None]


def _decided(row: HookRow, answer: Mapping[str, Any], specific: Mapping[str, Any]) -> _Decided:
    """Give the decision, its reason, other arguments, and why the turn ends."""
    decision = _decision(answer.get("decision")) if "decision" in answer else HookDecision.NONE
    reason = _text(answer, "reason")
    if row.event not in _DECIDING:
        return decision, reason, None, None
    if row.event != HookEvent.PERMISSION_REQUEST:
        if (said := specific.get("permissionDecision")) is not None:
            decision, reason = _decision(said), _text(specific, "permissionDecisionReason") or reason
        return decision, reason, _arguments(specific), None
    request = _table(specific.get("decision"), "decision")
    if not request:
        return decision, reason, None, None
    decision = _decision(request.get("behavior"))
    reason = _text(request, "message") or reason
    stop = (reason or _STOPPED) if request.get("interrupt") is True and decision is HookDecision.DENY else None
    return decision, reason, _arguments(request), stop


def _decision(said: object) -> HookDecision:
    found = _WORDS.get(said) if isinstance(said, str) else None
    if found is None:
        raise HookFailedError(f"its decision {said!r} is unknown")
    return found


def _arguments(table: Mapping[str, Any]) -> dict[str, Any] | None:
    found = table.get("updatedInput")
    return None if found is None else dict(_table(found, "updatedInput"))


def _output(specific: Mapping[str, Any]) -> str | None:
    found = specific.get("updatedToolOutput")
    return found if found is None or isinstance(found, str) else json.dumps(found, ensure_ascii=False)


def _table(found: object, name: str) -> Mapping[str, Any]:
    if found is None:
        return {}
    if not isinstance(found, Mapping):
        raise HookFailedError(f"its {name} is not an object")
    return found


def _text(table: Mapping[str, Any], name: str) -> str:
    found = table.get(name)
    if found is None:
        return ""
    if not isinstance(found, str):
        raise HookFailedError(f"its {name} is not a string")
    return found


def failed_word(row: HookRow, why: str) -> HookWord:
    """Say what a failed hook means: it blocks what it was asked about, or nothing."""
    if not row.blocks:
        return NO_WORD
    return HookWord(decision=HookDecision.DENY, reason=f"The {row.shown} failed: {why}.", by=row.by)


def merged_word(words: Sequence[HookWord]) -> HookWord:
    """Put together what several hooks say: deny beats ask beats allow, and what comes last changes the arguments."""
    decision = max((word.decision for word in words), key=_STRICT.index, default=HookDecision.NONE)
    deciding = [word for word in words if word.decision is decision is not HookDecision.NONE]
    stopping = [word for word in words if word.stop is not None]
    said = deciding or stopping
    arguments = [word.arguments for word in words if word.arguments is not None]
    outputs = [word.output for word in words if word.output is not None]
    return HookWord(
        decision=decision,
        reason="\n".join(dict.fromkeys(word.reason for word in deciding if word.reason)),
        by=", ".join(dict.fromkeys(word.by for word in said if word.by)),
        arguments=arguments[-1] if arguments else None,
        context="\n\n".join(word.context for word in words if word.context),
        output=outputs[-1] if outputs else None,
        stop=stopping[0].stop if stopping else None,
    )


def changes_twice(words: Sequence[HookWord]) -> bool:
    """Whether two hooks want different arguments for one call."""
    wanted = [word.arguments for word in words if word.arguments is not None]
    return any(one != wanted[0] for one in wanted)


def keeps_back(word: HookWord) -> bool:
    """Whether what a person wants is not done: nobody is asked again about what they want themselves."""
    return word.decision in (HookDecision.DENY, HookDecision.ASK) or word.stop is not None


def with_context(word: HookWord, context: str) -> HookWord:
    """Put a context before that of a word."""
    return replace(word, context="\n\n".join(filter(None, (context, word.context))))

"""Questions of a session as requests to a host, and what it says as answers; what it does not answer is a no."""

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from treadle.app.foreign_tools import amended_arguments, claude_call
from treadle.app.presentation.questions import asked_in_words
from treadle.headless.channel import Frame
from treadle.headless.frames import MODE_NAMES
from treadle.protocol.events import Answer
from treadle.protocol.permissions import Allowance, AllowScope, Mode, OptionKind, Question, QuestionKind
from treadle.protocol.tools import ReadPath, ToolCall, WritePath

ACCESS = "SandboxAccess"
"""The tool that hosts are asked about where a command needs more than its sandbox lets it: Claude Code has none."""

_NO_ANSWER = "The user gave no answer. Decide yourself."

HOST_MODES = {name: mode for mode, name in MODE_NAMES.items()}
"""The modes that hosts name, as ours."""


class HostAnswer(Struct, frozen=True, kw_only=True):
    """What a host said to a question: the answer, and what it wants besides; `notes` say what of it is not done."""

    answer: Answer
    interrupt: bool = False
    mode: Mode | None = None
    notes: tuple[str, ...] = ()


def permission_request(question: Question, call: ToolCall, root: str, roots: Sequence[str]) -> Frame:
    """Ask whether a call may run, or run again with more rights."""
    name, given = _shown(question, call, root)
    asked = asked_in_words(question, (root, *roots))
    request: Frame = {
        "subtype": "can_use_tool",
        "tool_name": name,
        "display_name": name,
        "title": asked.title,
        "description": asked.text,
        "input": given,
        "tool_use_id": call.id,
        "permission_suggestions": list(_suggestions(question, name)),
    }
    if asked.why:
        request["decision_reason"] = " ".join(asked.why)
    elif question.decision is not None and question.decision.reasons:
        request["decision_reason"] = question.decision.reasons[0].text
    outside = next((path for path in _paths(question) if not _within(path, (root, *roots))), None)
    return request if outside is None else {**request, "blocked_path": outside}


def _shown(question: Question, call: ToolCall, root: str) -> tuple[str, Frame]:
    if question.kind is not QuestionKind.PERMISSION:
        options = [{"label": option, "description": ""} for option in question.options]
        asked = {"question": question.text, "header": "", "options": options, "multiSelect": False}
        return "AskUserQuestion", {"questions": [asked]}
    shown = claude_call(call.name, question.arguments or call.arguments, root)
    if question.denial is None:
        return shown.name, shown.input
    denial = question.denial
    wanted = {"tool_name": shown.name, "input": shown.input, "right": denial.right.value, "target": denial.target}
    return ACCESS, wanted


def _paths(question: Question) -> Iterator[str]:
    yield from (access.path for access in question.accesses if isinstance(access, ReadPath | WritePath))


def _within(path: str, roots: Sequence[str]) -> bool:
    return any(path == root or path.startswith(f"{root.rstrip('/')}/") for root in roots)


def _suggestions(question: Question, name: str) -> Iterator[Frame]:
    """Offer what "always allow" would allow, never more."""
    if OptionKind.ALLOW_ALWAYS not in question.options or question.decision is None:
        return
    rules = [{"toolName": name, "ruleContent": _rule(offer)} for offer in question.decision.offers]
    yield {"type": "addRules", "rules": rules, "behavior": "allow", "destination": "session"}
    if question.accesses and all(isinstance(access, WritePath) for access in question.accesses):
        yield {"type": "setMode", "mode": MODE_NAMES[Mode.EDITS], "destination": "session"}


def _rule(offer: Allowance) -> str:
    if offer.argv:
        words = " ".join(offer.argv)
        return words if offer.exact else f"{words}:*"
    return f"domain:{offer.host}" if offer.host else f"/{offer.path}" if offer.path.startswith("/") else offer.path


def host_answer(question: Question, call: ToolCall, root: str, said: Frame) -> HostAnswer:
    """Read what the host said; what is not understood is a no."""
    if said.get("behavior") != "allow":
        message = str(said.get("message") or "")
        answer = Answer(question_id=question.id, option=OptionKind.REJECT_ONCE, text=message)
        return HostAnswer(answer=answer, interrupt=said.get("interrupt") is True)
    given = said.get("updatedInput")
    given = given if isinstance(given, dict) else None
    if question.kind is not QuestionKind.PERMISSION:
        text = _answers(given or {}) or _NO_ANSWER
        return HostAnswer(answer=Answer(question_id=question.id, option=OptionKind.ANSWER, text=text))
    listed = said.get("updatedPermissions")
    updates = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    arguments: dict[str, Any] | None = None
    shown = _shown(question, call, root)[1]
    if given is not None and given != shown:
        try:
            arguments = _amended(question, call, root, given)
        except ValueError as error:
            text = f"The approval changed the call to something that cannot run: {error}"
            return HostAnswer(answer=Answer(question_id=question.id, option=OptionKind.REJECT_ONCE, text=text))
    always = next((one for one in updates if _allows(one) and OptionKind.ALLOW_ALWAYS in question.options), None)
    option = OptionKind.ALLOW_ONCE if always is None or arguments is not None else OptionKind.ALLOW_ALWAYS
    scope = AllowScope.SESSION if always is None or always.get("destination") == "session" else AllowScope.USER
    mode = next((one.get("mode") for one in updates if one.get("type") == "setMode"), None)
    known = ("addRules", "setMode")
    notes = [f"the permission update {one.get('type')} is not done" for one in updates if one.get("type") not in known]
    return HostAnswer(
        answer=Answer(question_id=question.id, option=option, arguments=arguments, scope=scope),
        mode=HOST_MODES.get(str(mode)),
        notes=tuple(notes),
    )


def _amended(question: Question, call: ToolCall, root: str, given: Frame) -> dict[str, Any] | None:
    if question.denial is not None or question.copy is not None:
        raise ValueError("it has run already, so its input cannot be changed. Approve or reject it as it is.")
    return amended_arguments(call.name, question.arguments or call.arguments, given, root)


def _allows(update: Frame) -> bool:
    return update.get("type") == "addRules" and update.get("behavior") == "allow"


def _answers(given: Frame) -> str:
    answers = given.get("answers")
    if not isinstance(answers, dict):
        return ""
    return "\n".join(str(one) for one in answers.values())


def elicitation_request(question: Question) -> Frame:
    """Ask for what a running call, such as one of an MCP server, wants of the user."""
    request: Frame = {"subtype": "elicitation", "message": question.text, "mode": "url" if question.url else "form"}
    return {**request, "url": question.url} if question.url else {**request, "requested_schema": question.form}


def elicitation_answer(question: Question, said: Frame) -> Answer:
    """Read what the host said; anything but an acceptance declines."""
    content = said.get("content")
    if said.get("action") != "accept":
        return Answer(question_id=question.id, option=OptionKind.REJECT_ONCE)
    values = content if isinstance(content, dict) else None
    return Answer(question_id=question.id, option=OptionKind.ALLOW_ONCE, arguments=values)


NOBODY = "dontAsk"
"""The mode of hosts in which what would be asked is denied."""

"""Questions of a session as requests to a host, and what it says as answers; what it does not answer is a no."""

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from treadle.door.hosts import amended_arguments, claude_call
from treadle.headless.channel import Frame
from treadle.headless.frames import MODE_NAMES
from treadle.present.escape import exact
from treadle.present.question_words import asked_in_words
from treadle.protocol.events import Answer
from treadle.protocol.permissions import Allowance, AllowScope, Mode, OptionKind, Question, QuestionKind
from treadle.protocol.tools import ReadPath, Right, ToolCall, WritePath

ACCESS = "SandboxAccess"
"""The tool that hosts are asked about where a command needs more than its sandbox lets it: Claude Code has none."""

_END = "End the turn"
"""The answer to the question whether to wait for a limit's reset that does not wait."""

_NO_ANSWER = "The user gave no answer. Decide yourself."

NOBODY = "dontAsk"
"""The mode of hosts in which what would be asked is denied."""

HOST_MODES = {**{name: mode for mode, name in MODE_NAMES.items()}, NOBODY: Mode.ASK}
"""The modes that hosts name, as ours."""


class HostAnswer(Struct, frozen=True, kw_only=True):
    """What a host said to a question: the answer, and what it wants besides; `notes` say what of it is not done.

    `mode` is one of `HOST_MODES`, empty for none.
    """

    answer: Answer
    interrupt: bool = False
    mode: str = ""
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
        "description": asked.text if question.copy is None else f"{asked.text}\n\n{exact(question.copy.diff)}",
        "input": given,
        "tool_use_id": call.id,
        "permission_suggestions": list(_suggestions(question, name)),
    }
    if said := [line for line in (asked.whole_headline, *asked.why) if line]:
        request["decision_reason"] = "\n".join(said)
    outside = next((path for path in _paths(question) if not _within(path, (root, *roots))), None)
    return request if outside is None else {**request, "blocked_path": outside}


def _shown(question: Question, call: ToolCall, root: str) -> tuple[str, Frame]:
    if question.offers:
        shown = claude_call(call.name, call.arguments, root)
        hosts = ", ".join(offer.host for offer in question.offers)
        wanted = {"tool_name": shown.name, "input": shown.input, "right": Right.NETWORK.value, "target": hosts}
        return ACCESS, wanted
    if question.kind is not QuestionKind.PERMISSION:
        labels = (_wait(question), _END) if question.waits else question.options
        options = [{"label": label, "description": ""} for label in labels]
        asked = {"question": question.text, "header": "", "options": options, "multiSelect": question.multiple}
        return "AskUserQuestion", {"questions": [asked]}
    shown = claude_call(call.name, question.arguments or call.arguments, root)
    if question.denial is None:
        return shown.name, shown.input
    denial = question.denial
    wanted = {"tool_name": shown.name, "input": shown.input, "right": denial.right.value, "target": denial.target}
    return ACCESS, wanted


def _wait(question: Question) -> str:
    """Name the answer that waits: what a yes gives, as an option that can be chosen."""
    return f"{question.more[:1].upper()}{question.more[1:]}"


def _paths(question: Question) -> Iterator[str]:
    yield from (access.path for access in question.accesses if isinstance(access, ReadPath | WritePath))


def _within(path: str, roots: Sequence[str]) -> bool:
    return any(path == root or path.startswith(f"{root.rstrip('/')}/") for root in roots)


def _suggestions(question: Question, name: str) -> Iterator[Frame]:
    """Offer what "always allow" would allow, never more."""
    if OptionKind.ALLOW_ALWAYS not in question.options:
        return
    rules = [{"toolName": tool, "ruleContent": rule} for tool, rule in _rules(question, name)]
    yield {"type": "addRules", "rules": rules, "behavior": "allow", "destination": "session"}
    if question.accesses and all(isinstance(access, WritePath) for access in question.accesses):
        yield {"type": "setMode", "mode": MODE_NAMES[Mode.EDITS], "destination": "session"}


def _rules(question: Question, name: str) -> list[tuple[str, str]]:
    """Give what "always allow" would allow, as rules for a tool."""
    offers = question.offers or (() if question.decision is None else question.decision.offers)
    return [(name, _rule(offer)) for offer in offers]


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
    if question.waits:
        waits = _answers(given or {}) == _wait(question)
        option = OptionKind.ALLOW_ONCE if waits else OptionKind.REJECT_ONCE
        return HostAnswer(answer=Answer(question_id=question.id, option=option))
    if question.kind is not QuestionKind.PERMISSION and not question.offers:
        text = _answers(given or {}) or _NO_ANSWER
        return HostAnswer(answer=Answer(question_id=question.id, option=OptionKind.ANSWER, text=text))
    listed = said.get("updatedPermissions")
    updates = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    arguments: dict[str, Any] | None = None
    name, shown = _shown(question, call, root)
    if given is not None and given != shown:
        try:
            arguments = _amended(question, call, root, given)
        except ValueError as error:
            text = f"The approval changed the call to something that cannot run: {error}"
            return HostAnswer(answer=Answer(question_id=question.id, option=OptionKind.REJECT_ONCE, text=text))
    scope = _always(question, name, updates) if arguments is None else None
    option = question.yes if scope is None else OptionKind.ALLOW_ALWAYS
    mode = next((str(one.get("mode")) for one in updates if one.get("type") == "setMode"), "")
    return HostAnswer(
        answer=Answer(question_id=question.id, option=option, arguments=arguments, scope=scope or AllowScope.SESSION),
        mode=mode if mode in HOST_MODES else "",
        notes=tuple(_not_done(updates, mode, always=scope is not None)),
    )


def _always(question: Question, name: str, updates: Sequence[Frame]) -> AllowScope | None:
    """Say for how long the host allows all that it was offered; None where it allows less, or something else."""
    wanted = set(_rules(question, name))
    if OptionKind.ALLOW_ALWAYS not in question.options or not wanted:
        return None
    whole = next((one for one in updates if _allows(one) and wanted <= set(_named(one.get("rules")))), None)
    if whole is None:
        return None
    return AllowScope.SESSION if whole.get("destination") == "session" else AllowScope.USER


def _allows(update: Frame) -> bool:
    return update.get("type") == "addRules" and update.get("behavior") == "allow"


def _named(rules: Any) -> Iterator[tuple[str, str]]:
    for one in rules if isinstance(rules, list) else ():
        if isinstance(one, dict):
            yield str(one.get("toolName")), str(one.get("ruleContent") or "")


def _not_done(updates: Sequence[Frame], mode: str, *, always: bool) -> Iterator[str]:
    for one in updates:
        kind = one.get("type")
        if _allows(one):
            if not always:
                yield "no rule is added: that takes all those of permission_suggestions, and a call that is not changed"
        elif kind != "setMode":
            yield f"the permission update {kind} {one.get('behavior') or ''}".rstrip() + " is not done"
    if mode and mode not in HOST_MODES:
        yield f"there is no permission mode {mode}"


def _amended(question: Question, call: ToolCall, root: str, given: Frame) -> dict[str, Any] | None:
    if question.offers:
        raise ValueError("what a running command asks cannot be changed. Approve or reject it as it is.")
    if question.denial is not None or question.copy is not None:
        raise ValueError("it has run already, so its input cannot be changed. Approve or reject it as it is.")
    return amended_arguments(call.name, question.arguments or call.arguments, given, root)


def _answers(given: Frame) -> str:
    answers = given.get("answers")
    if not isinstance(answers, dict):
        return ""
    given_of = (one if isinstance(one, list) else [one] for one in answers.values())
    return "\n".join(str(one) for chosen in given_of for one in chosen)


def elicitation_request(question: Question, server: str) -> Frame:
    """Ask for what a running call, such as one of an MCP `server`, wants of the user."""
    request: Frame = {"subtype": "elicitation", "mcp_server_name": server, "message": question.text}
    request["mode"] = "url" if question.url else "form"
    return {**request, "url": question.url} if question.url else {**request, "requested_schema": question.form}


def elicitation_answer(question: Question, said: Frame) -> Answer:
    """Read what the host said; anything but an acceptance declines."""
    content = said.get("content")
    if said.get("action") != "accept":
        return Answer(question_id=question.id, option=OptionKind.REJECT_ONCE)
    values = content if isinstance(content, dict) else None
    return Answer(question_id=question.id, option=OptionKind.ALLOW_ONCE, arguments=values)

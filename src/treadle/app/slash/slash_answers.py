"""What a slash command gives: a text to show, ops to post, or a message to send."""

import io
import re
import shlex
import uuid
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from treadle.app.config.layers import load_settings
from treadle.app.models.offered import EFFORT_BUDGETS
from treadle.app.models.profiles import describe_profiles, model_in_profile
from treadle.app.security.trusting import SessionTrust, trust_report
from treadle.app.session.own_commands.command_answers import CommandAnswer, Handler, wrong
from treadle.app.session.own_commands.command_files import NamedText, find_texts
from treadle.app.session.own_commands.slash_commands import SLASH_GROUPS, SLASH_TABLE, find_slash
from treadle.app.session.own_commands.slash_lines import nearest_slash
from treadle.app.session.shared.access import SessionAccess
from treadle.present.context_use import filled_words
from treadle.present.escape import exact, printable
from treadle.present.goal_words import goal_words
from treadle.present.words import clip_text, counted, describe_allowance, tokens, written_text
from treadle.protocol.attach import SessionStatus
from treadle.protocol.errors import ConfigError
from treadle.protocol.events import CompactNow, Pin, RevokeAllowance, SetMode
from treadle.protocol.goals import BEGIN_GOAL, GoalState, GoalStatus, SetGoal
from treadle.protocol.notifications import QueuedPrompt
from treadle.protocol.permissions import Mode

_SHOWN = 200

_CHECK = re.compile(r"(?<!\S)--check(?:=|(?!\S))")
_CODE = re.compile(r"`[^`]*`")

_LATER: dict[str, str] = {}


def _mode(session: SessionAccess, argument: str) -> CommandAnswer:
    if argument not in list(Mode):
        return wrong(f"/mode needs one of {', '.join(Mode)}. It is {session.status.mode} now.")
    return CommandAnswer(ops=(SetMode(mode=Mode(argument)),))


def _compact(session: SessionAccess, argument: str) -> CommandAnswer:
    later = "Room is made in the context when the turn has ended." if session.status.turn_active else ""
    return CommandAnswer(text=later, ops=(CompactNow(focus=argument),))


def _then_send(mode: Mode) -> Handler:
    """Go to a mode, and send what follows the command."""
    return lambda _, argument: CommandAnswer(ops=(SetMode(mode=mode),), send=argument)


def _model(session: SessionAccess, argument: str) -> CommandAnswer:
    if not argument:
        return wrong(f"/model needs a name here: /model PROVIDER/NAME. The model is {session.status.model}.")
    return CommandAnswer(ops=(session.choose(argument),))


def _effort(session: SessionAccess, argument: str) -> CommandAnswer:
    if argument not in EFFORT_BUDGETS:
        return wrong(f"/effort needs one of {', '.join(EFFORT_BUDGETS)}: how much {session.status.model} thinks.")
    return CommandAnswer(
        text=f"{session.status.model} thinks with effort {argument} from the next request on.",
        ops=(session.choose(session.status.model, EFFORT_BUDGETS[argument]),),
    )


def _profile(session: SessionAccess, argument: str) -> CommandAnswer:
    settings, model = load_settings({}), session.status.model
    if not argument:
        return CommandAnswer(text=describe_profiles(settings, model))
    try:
        ref = model_in_profile(settings, argument, model)
        chosen = session.choose(ref)
    except ConfigError as error:
        return wrong(f"{error.what} {error.fix}")
    return CommandAnswer(text=f"{chosen.choice.model} is used from the next request on.", ops=(chosen,))


def _pin(session: SessionAccess, argument: str) -> CommandAnswer:
    pins = session.status.pins
    if not argument:
        rows = (f"{number}: {clip_text(exact(one.text), _SHOWN)}" for number, one in enumerate(pins, start=1))
        return CommandAnswer(text="\n".join(rows) or "Nothing is pinned. /pin TEXT keeps a text in the conversation.")
    first, _, number = argument.partition(" ")
    if first == "off" and not number:
        return wrong("/pin off needs the number of a pin: /pin off N (/pin lists them).")
    if first == "off" and number.isdecimal():
        if not 1 <= int(number) <= len(pins):
            return wrong(f"There is no pin {number}. /pin lists them.")
        return CommandAnswer(text="It is not pinned any more.", ops=(Pin(id=pins[int(number) - 1].id),))
    return CommandAnswer(text="Pinned.", ops=(Pin(id=uuid.uuid4().hex[:12], text=argument),))


def _goal(session: SessionAccess, argument: str) -> CommandAnswer:
    now = session.status
    if not argument:
        return CommandAnswer(text=_shown_goal(now.goal))
    if argument in ("pause", "resume", "clear"):
        if now.goal is None:
            return wrong("There is no goal. /goal CONDITION sets one.")
        if argument == "clear":
            return CommandAnswer(ops=(SetGoal(),))
        paused = argument == "pause"
        if now.goal.state in ((GoalState.PAUSED, GoalState.MET) if paused else ()):
            return wrong(f"The goal is {now.goal.state} already.")
        return CommandAnswer(ops=(SetGoal(condition=now.goal.condition, check=now.goal.check, paused=paused),))
    try:
        condition, check = read_goal(argument)
    except ValueError as error:
        return wrong(f"{error}: /goal --check 'make test' all tests pass.")
    send = "" if now.turn_active else BEGIN_GOAL
    return CommandAnswer(ops=(SetGoal(condition=condition, check=check),), send=send)


def read_goal(argument: str) -> tuple[str, str]:
    """Read a condition and its check, which stands before it, or behind it as one quoted word; raises `ValueError`."""
    mark = _CHECK.search(_CODE.sub(lambda code: "x" * len(code.group()), argument))
    if mark is None:
        return argument, ""
    condition, rest = argument[: mark.start()].strip(), io.StringIO(argument[mark.end() :])
    words = shlex.shlex(rest, posix=True)
    words.whitespace_split, words.commenters = True, ""
    try:
        check = (words.get_token() or "").strip()
    except ValueError:
        raise ValueError("The quotes around the check are not closed") from None
    others = rest.read().strip()
    if condition and others:
        raise ValueError("A check of several words needs quotes")
    if not check or not (condition or others):
        raise ValueError("/goal needs a condition, and --check a command")
    return condition or others, check


def _shown_goal(goal: GoalStatus | None) -> str:
    if goal is None:
        return (
            "There is no goal. /goal CONDITION keeps the model working until CONDITION is met. "
            "With --check 'CMD' CMD decides that."
        )
    return f"{goal.state}: {goal_words(goal)}"


def _queue(session: SessionAccess, argument: str) -> CommandAnswer:  # noqa: ARG001 - takes no argument
    return CommandAnswer(text=queue_text(session.status.queue, session.status.held))


def queue_text(queue: Sequence[QueuedPrompt], held: Sequence[QueuedPrompt] = ()) -> str:
    """List the prompts that wait, and behind them those that are held."""
    if not queue and not held:
        return "No messages are queued."
    marked = [*((one, "") for one in queue), *((one, "held: ") for one in held)]
    rows = (
        f"{n}: {mark}{clip_text(written_text(one.content), _SHOWN)}" for n, (one, mark) in enumerate(marked, start=1)
    )
    return "\n".join(rows)


def _todo(session: SessionAccess, argument: str) -> CommandAnswer:  # noqa: ARG001
    text, file = session.status.checklist, session.checklist_file
    where = f"{text}\n(It is in {file}. You can change it there.)"
    return CommandAnswer(text=where if text else "The task has no checklist yet.")


def _approvals(session: SessionAccess, argument: str) -> CommandAnswer:  # noqa: ARG001
    allowed = session.status.allowances
    if not allowed:
        text = "Nothing is allowed for this session beyond its mode and your rules (`treadle policy show`)."
        return CommandAnswer(text=text)
    rows = (f"{number}: {exact(describe_allowance(one))}" for number, one in enumerate(allowed, start=1))
    return CommandAnswer(text="\n".join(rows))


def _revoke(session: SessionAccess, argument: str) -> CommandAnswer:
    if not argument.isdecimal() or int(argument) < 1:
        return wrong("/revoke needs the number of an approval: /revoke N (/approvals lists them).")
    allowed, position = session.status.allowances, int(argument)
    if position > len(allowed):
        return CommandAnswer(text=_approvals(session, "").text, warning=True)
    gone = allowed[position - 1]
    text = f"Not allowed any more: {exact(describe_allowance(gone))}."
    return CommandAnswer(text=text, ops=(RevokeAllowance(allowance_id=gone.id),))


def status_rows(session: SessionAccess) -> list[str]:
    """Say what is true of a session apart from what stands in its log only."""
    now = session.status
    trusted = "trusted" if session.trust.trusted else "not trusted"
    return [
        f"session  {session.id}{f' ({clip_text(session.title, _SHOWN)})' if session.title else ''}",
        f"folder   {session.workspace} ({trusted})",
        *(f"also     {root}" for root in session.roots),
        f"model    {now.model}, {now.tool_protocol} tool calls",
        f"mode     {now.mode}",
        f"state    {', '.join(_going_on(now))}",
        *([] if now.goal is None else [f"goal     {_shown_goal(now.goal)}"]),
        f"context  {_context_line(session)}",
    ]


def _going_on(now: SessionStatus) -> Iterator[str]:
    yield "working" if now.turn_active else "waiting for a message"
    counts = (
        (len(now.queue), "queued message"),
        (len(now.held), "held message"),
        (len(now.questions), "open question"),
    )
    yield from (counted(number, noun) for number, noun in (*counts, (len(now.allowances), "allowance")) if number)


def _btw(session: SessionAccess, argument: str) -> CommandAnswer:  # noqa: ARG001
    return CommandAnswer(send=f"/btw {argument}") if argument else wrong("/btw needs a question: /btw QUESTION.")


def _context_line(session: SessionAccess) -> str:
    used, window = session.status.tokens, session.status.window
    if window is None:
        return f"about {tokens(used)} tokens; the model's window is not known"
    return f"about {filled_words(used, window)} tokens"


def _help(session: SessionAccess, argument: str) -> CommandAnswer:
    if not argument:
        return CommandAnswer(text=help_text(session.trust))
    name = argument.removeprefix("/")
    row = find_slash(name)
    if row is not None:
        return CommandAnswer(text=f"{row.usage}  {row.about_in_terminal}")
    one = next((one for one in find_texts(session.trust) if one.name == name), None)
    if one is None:
        return wrong(f"There is no /{name}. {nearest_slash(name) or '/help lists the commands.'}")
    return CommandAnswer(text="\n".join(filter(None, [*_named_row(one, 0), one.counting])))


def help_text(trust: SessionTrust) -> str:
    """List the commands, and the texts that can be entered by a name."""
    named = find_texts(trust)
    width = max(len(row.usage) for row in SLASH_TABLE)
    parts = [
        [
            f"{group[:1].upper()}{group[1:]}",
            *(f"  {row.usage:<{width}}  {row.about_in_terminal}" for row in SLASH_TABLE if row.group == group),
        ]
        for group in SLASH_GROUPS
    ]
    if named:
        parts.append(["Texts by their names", *(f"  {line}" for one in named for line in _named_row(one, width))])
    return "\n\n".join("\n".join(part) for part in parts)


def _named_row(one: NamedText, width: int) -> Iterator[str]:
    usage = printable(f"/{one.name} {one.hint}".rstrip())
    state = f" [not used: {one.unused}]" if one.unused else ""
    yield f"{usage:<{width}}  {clip_text(printable(one.about), _SHOWN)} ({printable(one.origin)}){state}"


def _said(text: str) -> Handler:
    return lambda session, argument: CommandAnswer(text=text, warning=True)  # noqa: ARG005


QUICK: Mapping[str, Handler] = MappingProxyType(
    {
        "mode": _mode,
        "plan": _then_send(Mode.PLAN),
        "act": _then_send(Mode.ASK),
        "model": _model,
        "effort": _effort,
        "profile": _profile,
        "compact": _compact,
        "init": lambda _, argument: CommandAnswer(send=f"/init {argument}".rstrip()),
        "newrule": lambda _, argument: CommandAnswer(send=f"/newrule {argument}".rstrip()),
        "btw": _btw,
        "pin": _pin,
        "goal": _goal,
        "queue": _queue,
        "todo": _todo,
        "approvals": _approvals,
        "revoke": _revoke,
        "trust": lambda session, _: CommandAnswer(text=trust_report(session.trust)),
        "help": _help,
        **{name: _said(text) for name, text in _LATER.items()},
    }
)
"""Commands that are done at once."""

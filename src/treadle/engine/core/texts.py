"""What the machine itself says to the model: results of calls that did not run, notes, reminders."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from treadle.protocol.checkpoints import Restored
from treadle.protocol.events import Source
from treadle.protocol.models import RefusedPart
from treadle.protocol.notifications import TurnStop
from treadle.protocol.permissions import Decision, Reason
from treadle.protocol.tools import Right, SandboxDenial

INTERRUPTED = (
    "Interrupted before it finished, by the user or because the program ended. Look at what it has done so far before "
    "you continue."
)
NOT_RUN = "Not run: "
"""How the result of a command begins that what it may run in refused."""

NOT_STARTED = "Not run: it was interrupted before it started. Make the call again if it is still needed."
OUTCOME_UNKNOWN = (
    "Outcome unknown: this was running when the program stopped. It may have taken effect completely, partly or not at "
    "all. Check what it did before you run it again."
)
SKIPPED = (
    "Not run: the user rejected an earlier call of the same reply. Take that into account before you call it again."
)
NO_USER_TO_ASK = (
    "Nobody is here to answer. Continue with the most sensible choice, and say in the result which one you made."
)
NO_TOOL_USED = (
    "Your last reply used no tool. If the task is done, call attempt_completion. Otherwise call a tool for the next "
    "step of the task."
)
CUT_REPLY = (
    "Your last reply was cut off at the output limit. Continue where it ended, in smaller pieces: write long files in "
    "several steps."
)


def sent_back_in_vain(times: int) -> str:
    """Say why a turn ends that hooks do not let end."""
    return f"hooks sent the answer back {times} times in a row, and no call was made in between"


EMPTY_REPLY = (
    "Your last replies had neither text nor a tool call. Call a tool to continue the task, or attempt_completion if it "
    "is done."
)
UNFINISHED = (
    "Your last reply called no tool, so the turn is about to end. If the task is done, call attempt_completion with "
    "the result. If not, call the next tool now."
)
PRESENTED_TOO_EARLY = (
    "Not shown to the user: an earlier call of the same reply failed. Read its result, fix what is wrong, and then "
    "finish."
)
COMMAND_DENIED = "[The command that shows the result was not run: the security policy denies it.]"
COMMAND_NEEDS_A_YES = (
    "[The command that shows the result was not run: it needs approval, and nobody is here to give it.]"
)
RIGHT_REFUSED = (
    "[The sandbox stopped this command, and the user did not grant the access that it needs. Do not try to get around "
    "the sandbox. Find another way, or say what could not be done.]"
)
NO_RIGHT_IN_PLAN = "[Plan mode gives no right. Say in the plan that this needs one, or find another way.]"
RUNS_IN_PLAN = Reason(rule="grants", text="approving lets it run in plan mode")
"""Which a question says that is put in plan mode, so that a yes means it."""

OLDER_IN_PLAN = (
    "A question that was put before you chose plan mode is still open. A yes to it does only what plan mode lets a "
    "call do. Choose another mode before you answer it to have it done."
)
NEVER_PRESENTED = "Not shown to the user. Finish again when the work is done."


def denied(decision: Decision, *, no_user: bool) -> str:
    """Say why a call may not run and what the model can do: one reason, the one that decides."""
    from treadle.protocol.reasons import words_of_decision

    way_on = "Find another way, or say what could not be done."
    if no_user:
        way_on = "Continue without it, or finish and say what could not be done."
    said = [
        f"Denied{' [no-user]' if no_user else ''}: {words_of_decision(decision).whole_headline}.",
        *(["It needs approval, and nobody is here to give it."] if no_user else []),
        *_alternatives(decision),
        *(["Do not try to get around this."] if decision.dangerous else []),
        way_on,
    ]
    return " ".join(said)


def _alternatives(decision: Decision) -> list[str]:
    if not decision.alternatives:
        return []
    from treadle.protocol.reasons import short_part

    listed = ", ".join(f"`{short_part(line)}`" for line in decision.alternatives)
    return [f"Called separately, {listed} would run without asking."]


def asked(title: str, decision: Decision) -> str:
    """Name what is asked about, with the rights that a yes gives."""
    granted = next((reason.text for reason in decision.reasons if reason.rule == "grants"), "")
    return f"{title}; {granted}" if granted else title


def rejected(comment: str) -> str:
    """Say that the user said no, and what the user said about it."""
    if comment:
        return f"The user rejected this call and said: {comment}"
    return "The user rejected this call. Ask what they would like instead if it is not clear."


def comment_on(name: str, comment: str) -> str:
    """Pass on what the user said while approving."""
    return f"While approving {name} the user said: {comment}"


def moved_to(old: str, new: str) -> str:
    """Say that the work goes on in a copy."""
    return f"From here on the workspace is {new}, a copy of {old} as it was at this step. Work in {new} only."


def continues_in(old: str, new: str) -> str:
    """Say that the conversation continues in another folder, whose files need not be those of before."""
    return (
        f"From here on the workspace is {new}, no longer {old}. Its files may differ: read them again before you edit."
    )


_SOURCES = {
    "mcp": "a client of Treadle's MCP server",
    "timer": "a timer that you set",
    "monitor": "a background command that you watch",
    "hook": "a hook that the user has set up",
    "goal": "the check of the goal that the user has set",
    "subagent": "a subagent that you began",
    "parent": "the agent that began you",
}


def came_from(source: Source, text: str) -> str:
    """Say whose words a message is where it is not the user's."""
    begins = " ".join(text.split())[:60]
    named = f" ({source.id})" if source.id else ""
    who = f"{_SOURCES.get(source.kind, source.kind)}{named}"
    return f'The message that begins with "{begins}" was not written by the user. It is from {who}.'


def amended(arguments: dict[str, Any]) -> str:
    """Say that the user changed the call, and into what."""
    written = msgspec.json.encode(arguments, order="deterministic").decode()
    return f"The user changed this call before approving it. It ran with these arguments instead: {written}"


def stopped_by_sandbox(denial: SandboxDenial) -> str:
    """Ask whether a command may run once more with the right that it lacked."""
    if denial.unrun:
        return f"This command did not run. {denial.text}. Run it with that access?"
    seen = f" ({denial.text})" if denial.text else ""
    if denial.by_output:
        failed = f"This command failed, and its own output says that the sandbox is in the way{seen}."
        any_output = "A program can print that for any reason."
        return f"{failed} {any_output} Run it once more, from the beginning, outside the sandbox?"
    stopped = f"The sandbox stopped this command. It needs {_missing_right(denial)}{seen}."
    opened = " The command can then read the secrets there." if denial.right is Right.READ else ""
    return f"{stopped} Run it once more, from the beginning, with that access?{opened}"


def ran_again(name: str) -> str:
    """Say that a command ran once more from its beginning, and what its first run did is still there."""
    return (
        f"{name} ran twice: the sandbox stopped the first run, and with the user's yes it ran again from the "
        "beginning. What the first run did is still there."
    )


def _missing_right(denial: SandboxDenial) -> str:
    match denial.right:
        case Right.READ:
            return f"to read {denial.target or 'something'}, which is kept secret from commands"
        case Right.WRITE:
            return f"to write {denial.target or 'outside the workspace'}"
        case Right.NETWORK:
            return f"to reach {denial.target or 'the network'}"
        case Right.UNSANDBOXED:
            made = f", as Landlock lets it make no {denial.target} beside protected files" if denial.target else ""
            return f"to run outside the sandbox{made}"


def files_restored(data: Restored) -> str:
    """Tell the model that files are not as it left them."""
    names = _some([*data.written, *(f"{path} (deleted)" for path in data.removed)])
    return f"The user restored files to an earlier state (checkpoint {data.checkpoint}). Read before you edit: {names}"


def back_in_conversation(*, files: bool) -> str:
    """Tell the model that it is not where it was."""
    also = "" if files else " The files were not restored: they may hold later changes."
    return f"The user took the conversation back to this point.{also}"


def works_no_more(session_ids: Sequence[str]) -> str:
    """Tell the model that nothing more comes of subagents on whose end it counts."""
    if len(session_ids) == 1:
        return f"The subagent {session_ids[0]} does not work for this conversation any more: nothing comes of it here."
    these = ", ".join(session_ids)
    return f"The subagents {these} do not work for this conversation any more: nothing comes of them here."


GOAL_CLEARED = "The user has taken the goal of this session back. Nothing is checked any more."
GOAL_PAUSED = "The user has paused the goal of this session. It is not checked until they go on with it."


def goal_set(condition: str, check: str) -> str:
    """Tell the model what the session works on until it is met."""
    by = f"by the command `{check}`, whose exit status must be 0" if check else "by what the conversation shows of it"
    return (
        f"The user has set a goal for this session: {condition}\nIt is checked {by}, whenever a turn of yours ends. "
        "While it is not met you go on with what is missing. Change nothing about the check itself to have it pass."
    )


def goal_not_met(condition: str, check: str, reason: str) -> str:
    """Have the model go on with the goal."""
    said = f"Its check `{check}` failed:\n{reason}" if check else f"By your own judgement: {reason}"
    return f"The goal is not met yet: {condition}\n{said}\n\nGo on until it is met."


def goal_question(condition: str) -> str:
    """Ask the model whether the goal is met."""
    return (
        f"Is this condition met now? {condition}\nJudge only by what this conversation shows was done and seen, not by "
        "what was planned. Begin your answer with YES or NO, then say in one sentence why. If you cannot tell: NO."
    )


STOPPED_WORK: Mapping[TurnStop, str] = {
    TurnStop.MAX_TURN_REQUESTS: "the limit of steps is reached",
    TurnStop.BUDGET: "the budget is used up",
    TurnStop.TIME: "the time limit is reached",
    TurnStop.CANCELLED: "a hook ended the turn",
    TurnStop.MISTAKES: "the model's calls could not be used",
    TurnStop.LOOP: "the model repeated itself",
    TurnStop.REFUSAL: "the model refused",
    TurnStop.ERROR: "the model could not be called",
}
"""Why the work on a goal ended with a turn that was cut."""

FORKED = (
    "This is a copy of the conversation up to here. The files may hold changes that were made after it. Read before "
    "you edit."
)
_NAMED = 20


def _some(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more." if more > 0 else ".")


NOTHING_TO_LEAVE_OUT = "The conversation is too short to remove anything from it."


def pinned(text: str) -> str:
    """Pass on what the user pinned."""
    return f"The user wants you to keep this in mind: {text}"


def no_summary(why: str) -> str:
    """Say why there is no summary of the model's."""
    return f"The model wrote no summary ({why.rstrip('.')}). What the log knows takes its place."


REVIEW_SUMMARY = "Older messages will be removed from the conversation. Use this summary of them?"
USE_SUMMARY = "Use it"
WITHOUT_SUMMARY = "Remove them without it"
SUMMARY_TITLE = "Summary"
"""A summary that the model wrote is shown with these words; any other answer says what to change in it."""


def guidance(text: str) -> str:
    """Pass on the user's guidance."""
    return f"The user's guidance: {text}"


def repeated(names: str, count: int) -> str:
    """Warn that nothing new comes of repeating calls."""
    return (
        f"You have called {names} {count} times in a row with the same arguments and the same result. Calling again "
        "changes nothing: try something else. To wait for something, wait longer in one call."
    )


def polled(count: int) -> str:
    """Say how to wait for a command that still runs."""
    return (
        f"You looked at the running command {count} times in a row, and there was nothing new. Give `wait` (seconds) "
        "to wait for its end, or do other work meanwhile."
    )


def steps_left(count: int) -> str:
    """Say that the turn is about to reach its limit."""
    few = "This is the last reply in" if count == 1 else f"{count} replies are left in this turn, including"
    return f"{few} this {'turn' if count == 1 else 'one'}. Finish what you can and say what is left to do."


def more_steps(made: int) -> str:
    """Ask whether a turn may go on beyond its limit."""
    return f"This turn has reached its limit of {made} steps. Go on?"


def too_many_mistakes(count: int) -> str:
    """Ask the user for guidance after mistakes."""
    return f"{count} replies of the model in a row could not be used. How should it continue?"


def in_a_loop(name: str) -> str:
    """Ask the user for guidance in a loop."""
    return f"The model repeats {name} with the same result. How should it continue?"


LEFT_OUT: Mapping[RefusedPart, str] = {
    RefusedPart.IMAGE: (
        "The provider refused an image. The images up to here are left out, and the request is sent again."
    ),
    RefusedPart.EVERY_IMAGE: "This model takes no images. They are left out, and the request is sent again.",
    RefusedPart.DOCUMENT: (
        "The provider refused a document. The documents up to here are left out, and the request is sent again."
    ),
    RefusedPart.THINKING: (
        "The provider refused reasoning that it had signed before. It is left out, and the request is sent again."
    ),
}
"""What a person reads when a part of the conversation is left out because its provider refused it."""

TOOLS_REFUSED = "it does not take function calls; calls are written as text from here on"

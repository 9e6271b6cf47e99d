"""What Treadle 0.1.0 said to the model and the user, word for word: its logs have none of it. Frozen."""

import re
from typing import Any

import msgspec

NOT_STARTED_1 = "Not run: it was interrupted before it started. Make the call again if it is still needed."
UNKNOWN_1 = (
    "Outcome unknown: this was running when the program stopped. It may have taken effect completely, partly or not at "
    "all. Check what it did before you run it again."
)
SKIPPED_1 = (
    "Not run: the user rejected an earlier call of the same reply. Take that into account before you call it again."
)
NO_USER_TO_ASK_1 = (
    "Nobody is here to answer. Continue with the most sensible choice, and say in the result which one you made."
)
NO_TOOL_USED_1 = (
    "Your last reply used no tool. If the task is done, call attempt_completion. Otherwise call a tool for the next "
    "step of the task."
)
CUT_REPLY_1 = (
    "Your last reply was cut off at the output limit. Continue where it ended, in smaller pieces: write long files in "
    "several steps."
)
EMPTY_REPLY_1 = (
    "Your last replies had neither text nor a tool call. Call a tool to continue the task, or attempt_completion if it "
    "is done."
)
UNFINISHED_1 = (
    "Your last reply called no tool, so the turn is about to end. If the task is done, call attempt_completion with "
    "the result. If not, call the next tool now."
)
PRESENTED_TOO_EARLY_1 = (
    "Not shown to the user: an earlier call of the same reply failed. Read its result, fix what is wrong, and then "
    "finish."
)
COMMAND_DENIED_1 = "[The command that shows the result was not run: the security policy denies it.]"
COMMAND_NEEDS_A_YES_1 = (
    "[The command that shows the result was not run: it needs approval, and nobody is here to give it.]"
)
RIGHT_REFUSED_1 = (
    "[The sandbox stopped this command, and the user did not grant the access that it needs. Do not try to get around "
    "the sandbox. Find another way, or say what could not be done.]"
)
NEVER_PRESENTED_1 = "Not shown to the user. Finish again when the work is done."
LEFT_OUT_1 = "[Earlier messages were left out to make room. Ask the user if something you need is missing.]"
NOBODY_FOR_MONEY_1 = "nobody is here to agree to what it costs"
NO_MORE_MONEY_1 = "the user did not want to spend more"
NEXT_TURN_1 = "the next turn tries it again"
NOTHING_LEFT_1 = "The conversation is too long for the model, and nothing more can be left out."

_RISK_CRITICAL = "critical"
_CHECK = re.compile(
    r"\b(tests?|pytest|unittest|tox|nox|jest|vitest|mocha|rspec|phpunit|ctest|check|lint|ruff|mypy|pyright|eslint|tsc"
    r"|build|compile|cargo|gradle|mvn|make)\b"
)


def denied_1(decision: dict[str, Any], *, no_user: bool) -> str:
    """Say why a call may not run."""
    way_on = "Find another way, or say what could not be done."
    if no_user:
        way_on = "Continue without it, or finish and say what could not be done."
    listed = ", ".join(f"`{_short(line)}`" for line in decision.get("alternatives", ()))
    said = [
        f"Denied{' [no-user]' if no_user else ''}: {_deciding(decision)}.",
        *(["It needs approval, and nobody is here to give it."] if no_user else []),
        *([f"Called separately, {listed} would run without asking."] if listed else []),
        *(["Do not try to get around this."] if decision["risk"] == _RISK_CRITICAL else []),
        way_on,
    ]
    return " ".join(said)


def _deciding(decision: dict[str, Any]) -> str:
    reasons, parts = decision.get("reasons", ()), decision.get("parts", ())
    if not reasons:
        return "the policy gave no reason"
    text = str(reasons[0]["text"]).rstrip(".")
    part = next((part["text"] for part in parts if reasons[0] in part.get("reasons", ())), "")
    return f"`{_short(part)}`: {text}" if part and len(parts) > 1 and part not in text else text


def _short(line: str) -> str:
    line = " ".join(line.split())
    return line if len(line) <= 100 else f"{line[:100]}..."


def asked_1(title: str, decision: dict[str, Any]) -> str:
    """Name what is asked about."""
    granted = next((one["text"] for one in decision.get("reasons", ()) if one["rule"] == "grants"), "")
    return f"{title}; {granted}" if granted else title


def rejected_1(comment: str) -> str:
    """Say that the user said no."""
    if comment:
        return f"The user rejected this call and said: {comment}"
    return "The user rejected this call. Ask what they would like instead if it is not clear."


def comment_on_1(name: str, comment: str) -> str:
    """Pass on what the user said while approving."""
    return f"While approving {name} the user said: {comment}"


def amended_1(arguments: dict[str, Any]) -> str:
    """Say that the user changed the call."""
    written = msgspec.json.encode(arguments, order="deterministic").decode()
    return f"The user changed this call before approving it. It ran with these arguments instead: {written}"


def stopped_by_sandbox_1(denial: dict[str, Any]) -> str:
    """Ask whether a command may run once more."""
    right, target, text = denial["right"], denial.get("target", ""), denial.get("text", "")
    lacked = {
        "read": f"to read {target or 'something'}, which is kept secret from commands",
        "write": f"to write {target or 'outside the workspace'}",
        "network": f"to reach {target or 'the network'}",
        "unsandboxed": "to run outside the sandbox",
    }[right]
    seen = f" ({text})" if text else ""
    opened = " The command can then read the secrets there." if right == "read" else ""
    return f"The sandbox stopped this command. It needs {lacked}{seen}. Run it once more with that access?{opened}"


def repeated_1(names: str, count: int) -> str:
    """Warn that nothing new comes of repeating calls."""
    return (
        f"You have called {names} {count} times in a row with the same arguments and the same result. Calling again "
        "changes nothing: try something else. To wait for something, wait longer in one call."
    )


def polled_1(count: int) -> str:
    """Say how to wait for a command that still runs."""
    return (
        f"You looked at the running command {count} times in a row, and there was nothing new. Give `wait` (seconds) "
        "to wait for its end, or do other work meanwhile."
    )


def steps_left_1(count: int) -> str:
    """Say that the turn is about to reach its limit."""
    few = "This is the last reply" if count == 1 else f"{count} replies are left"
    return f"{few} in this turn, including this one. Finish what you can and say what is left to do."


def dollars_1(amount: float) -> str:
    """Write an amount of US dollars."""
    return "<$0.01" if 0 < amount < 0.01 else f"${amount:,.2f}"


def with_run_1(runs: list[dict[str, Any]], command: str, said: str, full_output: str) -> list[dict[str, Any]]:
    """Keep the newest run of each command, the last four of them, and the newest check."""
    new = {"command": command, "said": _shorten(said), "full_output": full_output}
    every = [*(run for run in runs if run["command"] != command), new]
    kept = every[-4:]
    check = next((run for run in reversed(every) if _CHECK.search(run["command"])), None)
    return kept if check is None or check in kept else [check, *kept]


def _shorten(text: str, most: int = 600) -> str:
    if len(text) <= most:
        return text
    head = text[: int(most * (2 / 3))]
    tail = text[len(text) - (most - int(most * (2 / 3))) :]
    end, start = head.rfind("\n"), tail.find("\n")
    head = head[:end] if end > len(head) // 2 else head
    tail = tail[start + 1 :] if 0 <= start < len(tail) // 2 else tail
    left_out = len(text) - len(head) - len(tail)
    return f"{head}\n[… {left_out:,} characters left out: only the beginning and the end are kept]\n{tail}"

"""What became of calls in Treadle 0.1.0: judged, asked about, finished, interrupted, taken up again. Frozen."""

from typing import Any

from treadle.protocol.upgrades import words_1 as words
from treadle.protocol.upgrades.old_session import OldSession, joined_text, result
from treadle.protocol.upgrades.shapes_1 import JsonObject

_ONCE = ["allow_once", "reject_once"]
_ALWAYS = ["allow_once", "allow_always", "reject_once"]
_RAN = ("ok", "failed", "interrupted")


def flow_1(call: JsonObject) -> str:
    """Say what a call means for the loop."""
    return str(call["traits"].get("flow", "run"))


def finish_1(old: OldSession, call: JsonObject, outcome: JsonObject, *, brought: bool = False) -> None:
    """Give a call its result; what the call itself `brought` is in the log already."""
    if call["amended"]:
        note = {"type": "text", "text": words.amended_1(call["call"]["arguments"])}
        outcome, brought = {**outcome, "content": [note, *outcome.get("content", ())]}, False
    _end(old, call, outcome, brought=brought)
    old.close(call["call"]["id"])
    turn = old.state["turn"]
    if changes := outcome.get("changes"):
        turn["worked"] = True
        turn["changes"] = _merge(turn["changes"], changes)
        old.state["changed"] = _merge(old.state["changed"], changes)
    if call["traits"].get("kind", "other") == "execute" and flow_1(call) == "run" and outcome["outcome"] in _RAN:
        turn["worked"] = True
        lines = (access["command"] for access in call["accesses"] if access["type"] == "run_command")
        if (line := next(lines, None)) is not None:
            said, full = joined_text(outcome.get("content", [])), outcome.get("full_output", "")
            old.state["runs"] = words.with_run_1(old.state["runs"], line, said, full)


def _end(old: OldSession, call: JsonObject, outcome: JsonObject, *, brought: bool = False) -> None:
    call["status"], call["result"] = "finished", outcome
    if not outcome.get("content"):
        old.empty.add(call["call"]["id"])
    if not brought:
        old.say("result_made", call_id=call["call"]["id"], result=outcome)


def _merge(known: list[JsonObject], new: list[JsonObject]) -> list[JsonObject]:
    merged = {change["path"]: change for change in known}
    for change in new:
        earlier = merged.get(change["path"])
        if earlier is not None:
            sums = {name: change.get(name, 0) + earlier.get(name, 0) for name in ("added", "removed")}
            change = {**change, "before": earlier["before"], **sums}  # noqa: PLW2901 - it stands for both
        merged[change["path"]] = change
    return list(merged.values())


def propose_1(old: OldSession, data: JsonObject) -> None:
    """Take a whole call from the reply."""
    call = {"call": data["call"], "traits": data["traits"], "status": "proposed", "decision": None, "preview": None}
    call |= {"accesses": [], "result": None, "amended": False, "granted": False}
    old.state["calls"].append(call)
    if old.state["cancelling"]:
        _end(old, call, result("interrupted", words.NOT_STARTED_1))
    elif problem := data["call"].get("problem"):
        _end(old, call, result("invalid", problem))


def schedule_1(old: OldSession) -> None:
    """Judge every call whose turn it is."""
    calls = old.state["calls"]
    for index, call in enumerate(calls):
        if call["status"] != "proposed":
            continue
        before = calls[:index]
        if pure_1(call):
            ready = all(earlier["status"] == "finished" or pure_1(earlier) for earlier in before)
        else:
            ready = old.state["reply"] is not None and all(earlier["status"] == "finished" for earlier in before)
        if not ready:
            break
        if flow_1(call) == "end_turn" and any(one["result"] and one["result"]["outcome"] != "ok" for one in before):
            finish_1(old, call, result("skipped", words.PRESENTED_TOO_EARLY_1))
        else:
            call["status"] = "judging"


def pure_1(call: JsonObject) -> bool:
    """Whether a call only reads."""
    return bool(call["traits"].get("effect", "once") == "pure")


def judged_1(old: OldSession, data: JsonObject) -> None:
    """Act on the security layer's answer."""
    call, decision = old.call(data["call_id"], "judging"), data["decision"]
    call |= {"decision": decision, "preview": data["preview"], "accesses": data.get("accesses", [])}
    if _presents(call):
        old.state["turn"]["presented"] = call["preview"]["result"]
    match decision["verdict"]:
        case "DENY" if _presents(call):
            _finish_presented(old, call, words.COMMAND_DENIED_1)
        case "DENY":
            finish_1(old, call, result("denied", words.denied_1(decision, no_user=False)))
        case "ALLOW":
            _auto_approve(old, call, decision)
        case _ if call["amended"]:
            _allowed(old, call)
        case _:
            _needs_yes(old, call, decision)


def _presents(call: JsonObject) -> bool:
    return flow_1(call) == "end_turn" and bool(call["preview"] and call["preview"].get("result"))


def _finish_presented(old: OldSession, call: JsonObject, why: str = "") -> None:
    shown = call["preview"]["result"]
    finish_1(old, call, result("ok", f"{shown}\n\n{why}" if why else shown))


def _auto_approve(old: OldSession, call: JsonObject, decision: JsonObject) -> None:
    guard, most = old.state["guard"], old.state["limits"]["max_auto_approved"]
    if decision["risk"] in ("none", "read"):
        _allowed(old, call)
    elif most is not None and guard["auto_approved"] >= most:
        reason = {"rule": "unasked-cap", "text": f"{guard['auto_approved']} calls in a row ran without asking"}
        call["decision"] = {**decision, "reasons": [reason, *decision.get("reasons", ())]}
        _needs_yes(old, call, call["decision"], decision=call["decision"])
    else:
        guard["auto_approved"] += 1
        _allowed(old, call)


def _allowed(old: OldSession, call: JsonObject) -> None:
    if flow_1(call) != "ask":
        call["status"] = "starting"
    elif not old.state["user_present"]:
        finish_1(old, call, result("invalid", words.NO_USER_TO_ASK_1))
    else:
        arguments = call["call"]["arguments"]
        options = arguments.get("options", ())
        options = [str(option) for option in options] if isinstance(options, list) else []
        _ask(old, call, "followup", str(arguments.get("question", "")), options)


def _needs_yes(old: OldSession, call: JsonObject, judged_as: JsonObject, **shown: JsonObject) -> None:
    if not old.state["user_present"]:
        _deny_for_no_user(old, call)
        return
    title = call["preview"]["title"]
    always = judged_as.get("offers") and judged_as["risk"] != "critical"
    _ask(old, call, "permission", words.asked_1(title, judged_as), _ALWAYS if always else _ONCE, **shown)


def _deny_for_no_user(old: OldSession, call: JsonObject) -> None:
    if _presents(call):
        _finish_presented(old, call, words.COMMAND_NEEDS_A_YES_1)
        return
    old.state["turn"]["denied"] += 1
    finish_1(old, call, result("denied", words.denied_1(call["decision"], no_user=True)))


def _ask(old: OldSession, call: JsonObject, kind: str, text: str, options: list[str], **shown: Any) -> None:  # noqa: PLR0917
    call["status"] = "asking"
    old.ask(kind, text, options=options, call_id=call["call"]["id"], **shown)


def finished_1(old: OldSession, data: JsonObject) -> None:
    """Take the outcome of a call; what the sandbox stopped may run once more."""
    call, outcome = old.call(data["call_id"], "running", "judging"), data["result"]
    denial = outcome.get("denial")
    if denial is None or call["granted"] or not old.state["user_present"] or old.state["cancelling"]:
        finish_1(old, call, outcome, brought=True)
        return
    call["result"] = outcome
    _ask(old, call, "permission", words.stopped_by_sandbox_1(denial), _ONCE, denial=denial)


def answered_1(old: OldSession, question: JsonObject, data: JsonObject) -> None:
    """Act on the user's answer to a question about a call."""
    call = old.call(question["call_id"], "asking")
    old.close(call["call"]["id"])
    old.state["guard"]["auto_approved"] = 0
    option, said = data["option"], data.get("text", "")
    if option == "answer":
        finish_1(old, call, result("ok", said))
        return
    if said and (option in ("allow_once", "allow_always") or question.get("denial")):
        old.note(words.comment_on_1(call["call"]["name"], said))
    if question.get("denial") and option != "allow_once":
        refused = {"type": "text", "text": words.RIGHT_REFUSED_1}
        finish_1(old, call, {**call["result"], "content": [*call["result"].get("content", ()), refused]})
    elif question.get("denial"):
        call |= {"granted": True, "result": None, "status": "starting"}
    elif option in ("allow_once", "allow_always"):
        _approved(old, call, data)
    else:
        _rejected(old, call, said)


def _approved(old: OldSession, call: JsonObject, data: JsonObject) -> None:
    arguments, state = data.get("arguments"), old.state
    if arguments is not None and arguments != call["call"]["arguments"]:
        call |= {"call": {**call["call"], "arguments": arguments}, "amended": True, "status": "judging"}
        return
    call["status"] = "starting"
    if data["option"] == "allow_always":
        known = {allowance["id"] for allowance in state["allowances"]}
        state["allowances"] += [one for one in call["decision"].get("offers", ()) if one["id"] not in known]
        for other in state["calls"]:
            if other["status"] == "asking" and other["result"] is None and flow_1(other) != "ask":
                _judge_again(old, other)


def _judge_again(old: OldSession, call: JsonObject) -> None:
    old.close(call["call"]["id"])
    call["status"] = "judging"


def _rejected(old: OldSession, call: JsonObject, comment: str) -> None:
    if _presents(call) and not comment:
        _finish_presented(old, call)
        return
    finish_1(old, call, result("rejected", words.rejected_1(comment)))
    for later in old.state["calls"][old.state["calls"].index(call) + 1 :]:
        if later["status"] == "proposed":
            finish_1(old, later, result("skipped", words.SKIPPED_1))


def interrupt_1(old: OldSession) -> None:
    """End every call that does not run yet."""
    for call in old.state["calls"]:
        if call["status"] not in ("finished", "running"):
            finish_1(old, call, call["result"] or result("interrupted", words.NOT_STARTED_1))


def abandon_1(old: OldSession) -> None:
    """Give every open call its result after a restart in the middle of an interruption."""
    for call in old.state["calls"]:
        if call["status"] != "finished":
            ran = call["status"] == "running" and not pure_1(call)
            otherwise = result("unknown", words.UNKNOWN_1) if ran else result("interrupted", words.NOT_STARTED_1)
            finish_1(old, call, call["result"] or otherwise)


def drop_1(old: OldSession) -> None:
    """Forget the calls of a reply that broke."""
    for call in old.state["calls"]:
        old.close(call["call"]["id"])
    old.state["calls"] = []


def resume_1(old: OldSession) -> None:
    """Take open calls up again after a restart."""
    for call in old.state["calls"]:
        match call["status"]:
            case "asking" if _can_be_judged_again(old, call):
                _judge_again(old, call)
            case "asking":
                withdraw_1(old, call)
            case "running" if call["traits"].get("effect", "once") == "once":
                finish_1(old, call, result("unknown", words.UNKNOWN_1))
            case "running":
                call["status"] = "starting"
            case _:
                pass


def _can_be_judged_again(old: OldSession, call: JsonObject) -> bool:
    return not old.state["user_present"] and bool(call["decision"]) and call["result"] is None and flow_1(call) != "ask"


def withdraw_1(old: OldSession, call: JsonObject) -> None:
    """Give an open question the answer for nobody being there, unless somebody is."""
    if old.state["user_present"]:
        return
    if call["result"] is not None:
        finish_1(old, call, call["result"])
    elif flow_1(call) == "ask" or call["decision"] is None:
        finish_1(old, call, result("invalid", words.NO_USER_TO_ASK_1))
    else:
        _deny_for_no_user(old, call)

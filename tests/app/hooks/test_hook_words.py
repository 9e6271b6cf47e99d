"""What hooks answer, and what several of them say together."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.app.config.hook_settings import POLICY_EVENTS, HookEvent, HookOrigin
from treadle.app.hooks.hook_rows import HookAnswer, HookFailedError, HookRow
from treadle.app.hooks.hook_words import changes_twice, failed_word, merged_word, word_of
from treadle.engine.ports import HookDecision, HookWord

PRE, POST, ASKED = HookEvent.PRE_TOOL_USE, HookEvent.POST_TOOL_USE, HookEvent.PERMISSION_REQUEST


async def nothing(given: dict[str, Any]) -> HookAnswer:
    return HookAnswer()


def row(event: str = PRE, origin: HookOrigin = HookOrigin.USER, on_failure: str = "") -> HookRow:
    return HookRow(event=event, handler=nothing, origin=origin, name="`check`", on_failure=on_failure)


def pre(**said: Any) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **said}}


BY = "PreToolUse hook `check`"


@pytest.mark.parametrize(
    ("answer", "word"),
    [
        ({}, HookWord()),
        (
            pre(permissionDecision="deny", permissionDecisionReason="No."),
            HookWord(decision=HookDecision.DENY, reason="No.", by=BY),
        ),
        (pre(permissionDecision="allow"), HookWord(decision=HookDecision.ALLOW, by=BY)),
        (
            pre(permissionDecision="ask", updatedInput={"command": "ls"}, additionalContext="It is Friday."),
            HookWord(decision=HookDecision.ASK, by=BY, arguments={"command": "ls"}, context="It is Friday."),
        ),
        (pre(permissionDecision="defer"), HookWord(decision=HookDecision.ASK, by=BY)),
        ({"decision": "block", "reason": "No."}, HookWord(decision=HookDecision.DENY, reason="No.", by=BY)),
        ({"decision": "approve"}, HookWord(decision=HookDecision.ALLOW, by=BY)),
        ({"continue": False, "stopReason": "Enough."}, HookWord(by=BY, stop="Enough.")),
        ({"continue": False}, HookWord(by=BY, stop="A hook ended the turn.")),
        ({"suppressOutput": True, "unknown": 1}, HookWord()),
    ],
)
def test_an_answer_before_a_call(answer: dict[str, Any], word: HookWord) -> None:
    assert word_of(row(), answer) == word


@pytest.mark.parametrize(
    "answer",
    [
        pre(permissionDecision="maybe"),
        pre(permissionDecision=True),
        {"decision": "yes"},
        {"decision": None},
        pre(permissionDecision="allow", updatedInput="ls"),
        {"hookSpecificOutput": "x"},
        {"hookSpecificOutput": {"hookEventName": "PostToolUse"}},
        {"decision": "block", "reason": 5},
    ],
)
def test_what_is_not_understood_is_a_failure(answer: dict[str, Any]) -> None:
    with pytest.raises(HookFailedError):
        word_of(row(), answer)


def test_a_request_for_permission_is_answered_in_its_own_words() -> None:
    allowed = {"hookSpecificOutput": {"decision": {"behavior": "allow", "updatedInput": {"command": "ls"}}}}
    by = "PermissionRequest hook `check`"
    word = HookWord(decision=HookDecision.ALLOW, by=by, arguments={"command": "ls"})
    assert word_of(row(ASKED), allowed) == word
    denied = {"hookSpecificOutput": {"decision": {"behavior": "deny", "message": "No.", "interrupt": True}}}
    assert word_of(row(ASKED), denied) == HookWord(decision=HookDecision.DENY, reason="No.", by=by, stop="No.")


def test_a_yes_of_a_folder_says_nothing_and_its_no_does() -> None:
    folder = HookOrigin.FOLDER
    assert word_of(row(origin=folder), pre(permissionDecision="allow")) == HookWord()
    assert word_of(row(origin=folder), pre(permissionDecision="deny")).decision is HookDecision.DENY
    allowed = {"hookSpecificOutput": {"decision": {"behavior": "allow", "updatedInput": {"command": "rm"}}}}
    assert word_of(row(ASKED, folder), allowed) == HookWord()


def test_after_a_call_a_no_is_what_the_model_reads() -> None:
    answer = {"decision": "block", "reason": "Wrong.", "hookSpecificOutput": {"additionalContext": "Try x."}}
    assert word_of(row(POST), answer) == HookWord(context="Wrong.\n\nTry x.")
    given = {"hookSpecificOutput": {"updatedToolOutput": {"a": "ä"}}}
    assert word_of(row(POST), given) == HookWord(output='{"a": "ä"}')


@pytest.mark.parametrize("event", ["PreToolUse", "PostToolUse", "UserPromptSubmit", "SessionStart"])
def test_the_model_reads_a_bounded_part_of_what_one_hook_says(event: str) -> None:
    said = {"hookSpecificOutput": {"hookEventName": event, "additionalContext": "x" * 300_000}}
    context = word_of(row(event), said).context
    assert context == "x" * 10_000 + "\n[290,000 characters more were left out.]"


def test_a_failure_blocks_only_where_the_hook_decides_and_does_not_say_otherwise() -> None:
    for event in HookEvent:
        blocked = failed_word(row(event), "it is broken").decision is HookDecision.DENY
        assert blocked is (event in POLICY_EVENTS)
        assert failed_word(row(event, on_failure="continue"), "it is broken") == HookWord()
    said = "The PreToolUse hook `check` failed: it is broken."
    assert failed_word(row(), "it is broken") == HookWord(decision=HookDecision.DENY, reason=said, by=BY)


WORDS = st.builds(
    HookWord,
    decision=st.sampled_from(HookDecision),
    reason=st.sampled_from(["", "a", "b"]),
    by=st.sampled_from(["", "x", "y"]),
    arguments=st.none() | st.fixed_dictionaries({"n": st.integers(0, 2)}),
    context=st.sampled_from(["", "one", "two"]),
    output=st.none() | st.sampled_from(["o", "p"]),
    stop=st.none() | st.sampled_from(["s", "t"]),
)
STRICTNESS = list(HookDecision)


@given(st.lists(WORDS, max_size=5))
def test_the_strictest_of_all_words_wins_and_nothing_that_was_said_is_lost(words: list[HookWord]) -> None:
    merged = merged_word(words)
    assert merged.decision is max((word.decision for word in words), key=STRICTNESS.index, default=HookDecision.NONE)
    deciding = [word for word in words if word.decision is merged.decision is not HookDecision.NONE]
    assert set(merged.reason.split("\n")) - {""} == {word.reason for word in deciding} - {""}
    assert merged.context == "\n\n".join(word.context for word in words if word.context)
    given = [word.arguments for word in words if word.arguments is not None]
    assert merged.arguments == (given[-1] if given else None)
    assert changes_twice(words) is (len({str(one) for one in given}) > 1)
    assert (merged.stop is None) is all(word.stop is None for word in words)
    outputs = [word.output for word in words if word.output is not None]
    assert merged.output == (outputs[-1] if outputs else None)


@given(st.lists(WORDS, max_size=5), st.randoms())
def test_the_order_of_hooks_never_makes_a_decision_milder(words: list[HookWord], random: Any) -> None:
    shuffled = words[:]
    random.shuffle(shuffled)
    assert merged_word(shuffled).decision is merged_word(words).decision


@given(WORDS)
def test_one_word_stays_as_it_is(word: HookWord) -> None:
    merged = merged_word([word])
    quiet = word.decision is HookDecision.NONE
    expected = HookWord(
        decision=word.decision,
        reason="" if quiet else word.reason,
        by=word.by if not quiet or word.stop is not None else "",
        arguments=word.arguments,
        context=word.context,
        output=word.output,
        stop=word.stop,
    )
    assert merged == expected

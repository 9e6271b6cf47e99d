"""What hooks print, read whatever stands around it: a decision is read or it blocks, and noise never says yes."""

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from treadle.app.config.hook_settings import POLICY_EVENTS, HookEvent
from treadle.app.hooks.hook_answers import read_answer
from treadle.app.hooks.hook_rows import HookAnswer, HookRow
from treadle.app.hooks.hook_words import HeardAnswer, failed_word, heard_answer, merged_word
from treadle.engine.ports import HookDecision, HookWord

PRE, ASKED = HookEvent.PRE_TOOL_USE, HookEvent.PERMISSION_REQUEST
PROMPT, MODEL = HookEvent.USER_PROMPT_SUBMIT, HookEvent.PRE_MODEL_SWITCH
STRICT = (HookDecision.DENY, HookDecision.ASK)


async def nothing(given: dict[str, Any]) -> HookAnswer:
    return HookAnswer()


def row(event: str = PRE, on_failure: str = "") -> HookRow:
    return HookRow(event=event, handler=nothing, name="`check`", on_failure=on_failure)


def heard(printed: bytes, event: str = PRE) -> HeardAnswer:
    return heard_answer(row(event), read_answer(printed, event))


def outcome(printed: bytes, event: str = PRE) -> HookWord:
    """What comes of what a hook printed, as the session makes it."""
    found = heard(printed, event)
    return merged_word((found.word, failed_word(row(event), found.problem))) if found.problem else found.word


def specific(event: str, **said: Any) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": event, **said}}


DENIALS: list[tuple[str, dict[str, Any]]] = [
    *((event, {"decision": word, "reason": "No."}) for event in sorted(POLICY_EVENTS) for word in ("block", "deny")),
    *((event, specific(event, permissionDecision="deny")) for event in (PRE, MODEL)),
    (ASKED, specific(ASKED, decision={"behavior": "deny", "message": "No."})),
    *((event, {"continue": False, "stopReason": "No."}) for event in sorted(POLICY_EVENTS)),
]
ASKS: list[tuple[str, dict[str, Any]]] = [
    *((PRE, specific(PRE, permissionDecision=word)) for word in ("ask", "defer")),
    *((event, {"decision": "ask"}) for event in sorted(POLICY_EVENTS)),
]
YESES: list[tuple[str, dict[str, Any]]] = [
    (PRE, specific(PRE, permissionDecision="allow")),
    (PRE, {"decision": "approve"}),
    (ASKED, specific(ASKED, decision={"behavior": "allow"})),
]

NOISE = st.one_of(
    st.text(max_size=40),
    st.sampled_from(
        [
            "Now using node v22.1.0\n",
            "\x1b[32mok\x1b[0m\r\n",
            "\x1b]0;a title\x07",
            "\x1b]0;never ended",
            '{"level": "info", "text": "checked"}\n',
            "\ufeff",
            "{}\n",
            "a{b}c\n",
            "```json\n",
            "{not json}\n",
            '{"half": ',
            "[",
            "{ ",
        ]
    ),
)
FORMS = st.sampled_from(
    [
        json.dumps,
        lambda said: json.dumps(said, indent=2),
        lambda said: json.dumps(said, indent=1).replace("\n", "\r\n"),
        lambda said: f"```json\n{json.dumps(said, indent=2)}\n```",
        lambda said: f"[{json.dumps(said)}]",
        lambda said: json.dumps(said).replace(":", "\x1b[1;39m:\x1b[0m").replace('"', '\x1b[0;32m"'),
        lambda said: json.dumps(said).encode("unicode_escape").decode(),
        lambda said: json.dumps(said).replace("d", "\\u0064"),
        repr,
        lambda said: json.dumps(said)[:-1] + ",}",
    ]
)
ENCODINGS = st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])


@pytest.mark.parametrize("before", ["Shell ready\n", "\x1b[0m", "\ufeff", "Now using node v22.1.0 (npm v10)\n"])
def test_what_a_shell_prints_before_a_no_hides_it_not(before: str) -> None:
    printed = f"{before}{json.dumps(specific(PRE, permissionDecision='deny', permissionDecisionReason='No.'))}\n"
    assert heard(printed.encode(), PRE).word.decision is HookDecision.DENY


@given(st.sampled_from(DENIALS), FORMS, NOISE, NOISE, ENCODINGS)
def test_a_no_is_a_no_whatever_stands_around_it(
    said: tuple[str, dict[str, Any]], form: Any, before: str, after: str, encoding: str
) -> None:
    event, answer = said
    printed = f"{before}\n{form(answer)}{after}".encode(encoding, errors="replace")
    word = outcome(printed, event)
    assert word.decision is HookDecision.DENY or word.stop is not None
    assert word.arguments is None


@given(st.sampled_from([*DENIALS, *ASKS]), NOISE, st.data())
def test_what_is_cut_off_blocks(said: tuple[str, dict[str, Any]], before: str, data: st.DataObject) -> None:
    event, answer = said
    text = json.dumps(answer)
    cut = text[: data.draw(st.integers(1, len(text) - 1))]
    word = outcome(f"{before}{cut}".encode(errors="replace"), event)
    assert word.decision is HookDecision.DENY or word.stop is not None


@given(st.sampled_from(ASKS), NOISE, NOISE, ENCODINGS)
def test_what_is_to_be_asked_is_never_a_yes(
    said: tuple[str, dict[str, Any]], before: str, after: str, encoding: str
) -> None:
    event, answer = said
    assert (
        outcome(f"{before}\n{json.dumps(answer)}{after}".encode(encoding, errors="replace"), event).decision in STRICT
    )


@given(st.sampled_from(YESES), st.text("x \n", max_size=5), st.text("x \n", max_size=5))
def test_a_yes_stands_alone_since_the_model_may_have_written_what_is_beside_it(
    said: tuple[str, dict[str, Any]], before: str, after: str
) -> None:
    event, answer = said
    word = outcome(f"{before}\n{json.dumps(answer)}\n{after}".encode(), event)
    assert word.decision is (HookDecision.NONE if "x" in f"{before}{after}" else HookDecision.ALLOW)


@given(st.permutations([answer for event, answer in (*DENIALS, *ASKS, *YESES) if event == PRE]), st.integers(1, 6))
def test_of_several_decisions_the_strictest_counts(answers: list[dict[str, Any]], many: int) -> None:
    chosen = answers[:many]
    found = outcome("\n".join(map(json.dumps, chosen)).encode())
    singly = [outcome(json.dumps(one).encode()) for one in chosen]
    order = list(HookDecision)
    assert found.decision is max((one.decision for one in singly), key=order.index)
    assert (found.stop is None) is all(one.stop is None for one in singly)


@given(st.sampled_from([*DENIALS, *ASKS]), st.sampled_from(["result", "hooks", "hookSpecificOutput", "data"]))
@example((PRE, {"decision": "deny"}), "hookSpecificOutput")
def test_a_decision_in_a_place_where_none_is_read_blocks(said: tuple[str, dict[str, Any]], name: str) -> None:
    event, answer = said
    for wrapped in ({name: answer}, {"a": [{name: answer}]}):
        assert outcome(json.dumps(wrapped).encode(), event).decision is HookDecision.DENY


@pytest.mark.parametrize(
    ("printed", "event"),
    [
        ('{"permissionDecision": "deny"}', PRE),
        ('{"hookSpecificOutput": {"decision": {"behavior": "deny"}}}', PRE),
        ('{"hookSpecificOutput": {"permissionDecision": "deny"}}', ASKED),
        ('{"hookSpecificOutput": {"permissionDecision": "deny"}}', PROMPT),
        ('{"Decision": "block"}', PRE),
        ('{"permission_decision": "deny"}', PRE),
        ('{"decision": "block", "decision": "approve"}', PRE),
        ('{"decision": "Block"}', PRE),
        ('{"continue": "false"}', PRE),
        ('"{\\"decision\\": \\"block\\"}"', PRE),
        ('{"type": "result", "result": "{\\"decision\\": \\"block\\"}"}', PRE),
        ("deny", PRE),
        ("decision: block\nreason: No.", PRE),
        ("<decision>deny</decision>", PRE),
        ("{ /* now */ 'decision': 'deny' }", PRE),
        ('a\n{"decision": "block"', PROMPT),
        ("{" * 1000, PRE),
        ('{"a":' * 100_000, PRE),
        ("x" * 2_000_000, PRE),
    ],
)
def test_what_may_be_a_decision_and_is_none_blocks_with_what_is_wrong(printed: str, event: str) -> None:
    word = outcome(printed.encode(), event)
    assert word.decision is HookDecision.DENY
    assert word.reason.startswith(f"The {event} hook `check` failed: it")


@pytest.mark.parametrize(
    "printed", ["", "checked 3 rules\n", '{"level": "info"}\n{"level": "warn"}', "Do {this} and ${that}.", "{}", "[]"]
)
def test_noise_without_a_decision_says_nothing(printed: str) -> None:
    assert heard(printed.encode()) == HeardAnswer(word=HookWord())


def test_what_a_hook_shows_of_the_call_decides_nothing() -> None:
    shown = {"tool_name": "Bash", "tool_input": {"command": "echo", "decision": "block"}}
    assert heard(json.dumps(shown).encode()) == HeardAnswer(word=HookWord())
    words = {"systemMessage": 'I print {"decision": "deny"} on Fridays.', "tool_input": {"command": "decision: deny"}}
    assert heard(json.dumps(words).encode()) == HeardAnswer(word=HookWord())
    amended = specific(PRE, updatedInput={"decision": "x"})
    assert heard(json.dumps(amended).encode()).word.arguments == {"decision": "x"}


def test_a_yes_beside_other_text_does_not_apply_and_a_notice_says_so() -> None:
    printed = b'Checking: {"decision": "approve"}\n'
    notice = "The PreToolUse hook `check` printed other text beside its answer, so its yes does not apply."
    assert heard(printed) == HeardAnswer(word=HookWord(), notice=notice)


def test_another_input_beside_other_text_blocks() -> None:
    found = heard(b"hello\n" + json.dumps(specific(PRE, updatedInput={"command": "ls"})).encode())
    assert (found.word.arguments, found.problem) == (
        None,
        "it printed other text beside its answer, so its updatedInput is not used",
    )


def test_where_nothing_is_decided_only_an_answer_that_stands_alone_is_heard() -> None:
    for event in (HookEvent.STOP, HookEvent.POST_TOOL_USE):
        said = json.dumps({"decision": "block", "reason": "Do this instead."})
        assert read_answer(said.encode("utf-16"), event) == HookAnswer(objects=(json.loads(said),))
        for noise in (f"FAILED: {said}\n", '-  {"a": 1,\n+  { b: 2 }', "decision: block", '{ x: 1 } {"a": 1}'):
            assert read_answer(f"ran\n{noise}".encode(), event) == HookAnswer()
        assert read_answer(f"{said}\nend".encode(), event).unread == "it printed other text beside its answer"
        assert read_answer(b'{"a": ', event).unread.startswith("it printed broken JSON")


def test_what_an_answer_adds_beside_other_text_is_not_told_the_model_but_at_a_prompt() -> None:
    for event, context in ((PRE, ""), (PROMPT, "More.")):
        printed = f"noise\n{json.dumps(specific(event, additionalContext='More.'))}"
        assert heard(printed.encode(), event) == HeardAnswer(word=HookWord(context=context))


def test_words_for_the_model_stay_words_where_they_are_wanted() -> None:
    for text in ("Use tabs.", 'const x = { a: 1 };\nlet y = {"b": 2};', '{"name": "x"}\n', "To continue, no changes."):
        found = heard(text.encode(), PROMPT)
        assert found == HeardAnswer(word=HookWord(context="" if text.startswith("{") else text.strip()))
    said = f"hello\n{json.dumps(specific(HookEvent.SESSION_START, additionalContext='More.'))}"
    assert heard(said.encode(), HookEvent.SESSION_START).word.context == said
    assert heard("Grüße".encode("utf-16"), HookEvent.SESSION_START).word.context == "Grüße"


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("anthropics/claude-code#4669", {"permissionDecision": "deny", "permissionDecisionReason": "No."}),
        ("anthropics/claude-code#48760", {"permissionDecision": "allow"}),
        ("anthropics/claude-code#46537", specific(PRE, permissionDecision="block")),
        ("anthropics/claude-code#43407", {"hookSpecificOutput": {"permissionDecision": "deny"}}),
        ("a decision in capitals", specific(PRE, permissionDecision="Deny")),
    ],
)
def test_no_decision_of_a_report_is_passed_over(source: str, said: dict[str, Any]) -> None:
    assert outcome(json.dumps(said).encode()).decision is HookDecision.DENY, source

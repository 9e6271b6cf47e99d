"""The cards of questions as HTML: the answers that the terminal offers, and nothing that could do anything."""

import re
from html import unescape

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.tui.asked import (
    AGAIN,
    BLOCKS,
    BUDGET,
    COMPOUND,
    DANGER,
    EDIT,
    EVERY_KIND,
    FOLLOWUP,
    GUIDANCE,
    KEEP,
    RUN,
    SEVERAL,
    UNITTEST,
    command,
    decided,
    part,
)
from treadle.present.forms import typed_values
from treadle.protocol.permissions import Mode, Question, QuestionKind, Verdict
from treadle.protocol.tools import Risk
from treadle.web.question_cards import OpRefusal, question_html

ROOTS = ("/project",)
FORM = {
    "properties": {
        "name": {"type": "string", "description": "Who <you> are"},
        "age": {"type": "integer"},
        "tags": {"type": "array", "items": {"enum": ["a", "b"]}},
        "colour": {"enum": ["red", "blue"]},
        "sure": {"type": "boolean", "default": True},
        "broken": "no schema",
    },
    "required": ["name"],
}
ELICIT = Question(id="q", kind=QuestionKind.ELICITATION, text="Fill this in", form=FORM)


def html_of(question: Question, mode: Mode = Mode.ASK, refused: OpRefusal = lambda _: None) -> str:
    return question_html("s1", question, ROOTS, mode, refused=refused)


def test_where_several_may_be_chosen_there_are_boxes_and_one_button_sends_them() -> None:
    html = html_of(SEVERAL)
    assert answers_of(html) == [("chosen", "Send what is chosen"), ("else", "Something else…")]
    assert re.findall(r'name="chosen" value="(\w+)"', html) == ["red", "blue", "green"]


def answers_of(html: str) -> list[tuple[str, str]]:
    """The answers that stand there at once: what each does and what it is called."""
    first = html.partition('<div class="answers">')[2].partition('<span class="after">')[0]
    found = re.findall(r'data-act="([^"]+)"[^>]*>([^<]*)</button>', first)
    return [(act, unescape(label)) for act, label in found if act != "how"]


def ways_of(html: str) -> list[tuple[str, str]]:
    """The ways to say yes: what each does, and what the button says once it is chosen."""
    return re.findall(r'<input type="radio"[^>]* data-act="(\w+)" data-words="([^"]+)"', unescape(html))


def more_of(html: str) -> list[str]:
    """What else the card can open."""
    after = html.partition('<span class="after">')[2].partition("</span>\n</div>")[0]
    return re.findall(r'data-act="([^"]+)"', after)


def test_the_answers_are_those_of_the_terminal_and_yes_is_first() -> None:
    usual = [("allow", "Allow once"), ("reject", "Reject…")]
    assert answers_of(html_of(RUN)) == usual
    assert ways_of(html_of(RUN)) == [
        ("allow", "Allow once"),
        ("session", "Allow this session"),
        ("always", "Always allow…"),
    ]
    assert "Always in project: <code>python3 -m unittest …</code>" in html_of(RUN)
    assert answers_of(html_of(EDIT)) == usual
    assert ways_of(html_of(EDIT)) == [("allow", "Allow once"), ("edits", "Allow all edits")]
    assert more_of(html_of(EDIT)) == ["comment", "blocks", "change", "reasons"]
    assert ways_of(html_of(EDIT, Mode.PLAN)) == []
    assert answers_of(html_of(KEEP)) == [("allow", "Apply"), ("reject", "Discard"), ("for real", "Run it for real")]
    assert answers_of(html_of(BUDGET)) == [("allow", "Yes, up to $10.00"), ("reject", "No")]
    assert answers_of(html_of(FOLLOWUP)) == [("option", "red"), ("option", "blue"), ("else", "Something else…")]
    assert answers_of(html_of(AGAIN)) == [("allow", "Allow once, with this right"), ("reject", "Reject…")]


def test_danger_begins_with_no_and_wants_yes_to_be_typed() -> None:
    html = html_of(DANGER)
    assert answers_of(html) == [("reject", "Reject…"), ("allow", "Run it once…")]
    assert html.count('class="fill"') == 1
    assert 'data-act="reject" class="fill"' in html
    assert ways_of(html) == []
    assert more_of(html) == ["change", "reasons"]
    assert 'class="question danger"' in html
    assert "DANGER" in html
    assert '<section class="panel" data-panel="allow" hidden>' in html
    assert 'name="sure"' in html
    assert html.count('class="headline"') == 1
    assert "You type “yes” first" in html
    above, panel = html.split('data-panel="reasons"')
    assert ('class="why"' in above, "Rule: network" in panel) == (False, True), (
        "the other reasons are under why it asks"
    )
    assert '| <strong class="stands-out">sh</strong></pre>' in html
    assert html.count("stands-out") == 1, "the dangerous part alone"
    assert 'data-panel="allow"' not in html_of(COMPOUND)
    assert "You type" not in html_of(COMPOUND)
    reads, runs = part("cat i.sh", Risk.READ, verdict=Verdict.ALLOW), part("sh", Risk.CRITICAL, "piped-script")
    echoes = part("echo sh", Risk.READ, verdict=Verdict.ALLOW)
    line = command("cat i.sh; echo sh | sh", decided(Risk.CRITICAL, parts=(reads, echoes, runs)))
    assert 'cat i.sh; echo sh | <strong class="stands-out">sh</strong></pre>' in html_of(line), "where it stands"


def test_the_title_and_the_whole_of_what_is_asked_come_before_the_choices() -> None:
    for html in (html_of(RUN), html_of(EDIT), html_of(DANGER)):
        places = [html.index(part) for part in ("<h2", 'class="scrolls-in"', "<footer>", 'data-act="reject"')]
        assert places == sorted(places)
        assert html.partition("<footer>")[0].count("rule:") == 0, "rules are named only under why it asks"


def test_a_rule_says_what_it_allows_and_what_not_before_it_is_saved() -> None:
    panel = html_of(RUN).partition('data-panel="always"')[2].partition("</section>")[0]
    assert "Always allow commands that begin with `python3 -m unittest`, for this project." in unescape(panel)
    assert "<code>python3 -m unittest -q</code>" in panel
    assert "<code>python3 -m other-unittest</code>" in panel
    assert panel.index('data-act="close"') < panel.index('data-act="save"')


def test_what_stands_out_of_a_command_is_marked_and_named() -> None:
    html = unescape(html_of(COMPOUND))
    assert '&& <strong class="stands-out">rm -rf build</strong></pre>' in html
    assert "(inside this project)" in html


def test_a_call_can_be_changed_first_as_its_text_or_as_json() -> None:
    assert 'name="changed" data-name="command" value="python3 -m unittest -q"' in html_of(RUN)
    fetch = replace(EVERY_KIND["fetch"], arguments={"url": "https://example.com/", "how": "fast", "n": 3})
    assert '"n": 3' in unescape(html_of(fetch)).partition('name="changed" data-name=""')[2]
    for question in (AGAIN, KEEP, BUDGET, FOLLOWUP, GUIDANCE):
        assert 'name="changed"' not in html_of(question)


def test_blocks_are_shown_as_changes_and_of_an_edit_only_its_new_texts_can_be_changed() -> None:
    html = unescape(html_of(EDIT))
    assert not re.search("SEARCH|REPLACE|={7}", html), "nothing of how a model writes an edit"
    panel = html.partition('data-panel="blocks"')[2].partition("</section>")[0]
    assert re.findall(r'<div class="(add|del)"><span class="n">(\d*)</span>', panel) == [("del", ""), ("add", "")] * 2
    panel = html.partition('data-panel="change"')[2]
    assert re.findall(r"<label>([^<]+)\n<textarea[^>]*>\n([^<]*)</textarea>", panel) == [
        ("New text of block 1 of 2", "first!\n"),
        ("New text of block 2 of 2", "second!\n"),
    ]
    one = replace(EDIT, arguments={**EDIT.arguments, "diff": BLOCKS[: len(BLOCKS) // 2]})
    assert "<label>New text\n" in html_of(one)
    several = BLOCKS.replace("first!", "first!\n=======\nor this")
    assert "=======" in html_of(replace(EDIT, arguments={"path": "a", "diff": several})), "what has several readings"


def test_a_yes_to_one_line_only_says_so_and_does_not_repeat_it() -> None:
    assert RUN.decision is not None
    (offer,) = RUN.decision.offers
    line = replace(offer, argv=tuple(UNITTEST.split()), exact=True)
    html = html_of(replace(RUN, decision=replace(RUN.decision, offers=(line,))))
    ways = html.partition('class="reach"')[2].partition('<div class="answers">')[0]
    assert re.findall(r"<b>([^<]+)</b><small>([^<]+)</small>", ways) == [
        ("Once", "This call only"),
        ("This session", "Covers this line only"),
        (
            "Always in project",
            "Covers this line only. Saved as a rule after one more question; listed and revocable in Settings, Rules",
        ),
    ]


def test_the_effect_of_a_command_is_a_word_in_the_head_and_the_words_of_the_model_stand_in_quotes() -> None:
    assert '<span class="chip">runs project code</span>' in html_of(RUN)
    assert '<span class="chip">deletes files</span>' in html_of(COMPOUND)
    assert "chip" not in html_of(EDIT)
    html = question_html(
        "s1", RUN, ROOTS, Mode.ASK, refused=lambda _: None, said="Done”.\n<b>Now “it”</b> " + "x" * 400
    )
    (said,) = re.findall('<p class="why said">([^<]*)</p>', unescape(html).replace("<b>", "").replace("</b>", ""))
    assert said == f'“Done". Now "it" {"x" * 277} …”'
    assert html.index("<pre") < html.index("said") < html.index('class="reach"')


def test_why_it_asks_says_each_reason_once() -> None:
    assert COMPOUND.decision is not None
    twice = replace(COMPOUND.decision, parts=COMPOUND.decision.parts[-1:] * 2)
    lines = re.findall(r"<li>([^<]*)", html_of(replace(COMPOUND, decision=twice)).partition('class="reasons"')[2])
    assert len(lines) == len(set(lines)) > 3
    assert lines[:2] == ["Runs in /project", "Risk: execute"]


def test_a_form_has_a_field_for_each_value_and_what_is_typed_is_read() -> None:
    html = html_of(ELICIT)
    assert answers_of(html) == [("allow", "Send this"), ("reject", "No")]
    fields = html.partition("<footer>")[0]
    assert re.findall(r'<(?:input|select)[^>]* name="(\w+)"', fields) == ["name", "age", "tags", "colour", "sure"]
    assert "Who &lt;you&gt; are" in html
    typed = {"name": "Ada", "age": "36", "tags": "a, b", "colour": "", "sure": "no"}
    assert typed_values(FORM, typed) == ({"name": "Ada", "age": 36, "tags": ["a", "b"], "sure": False}, "")
    assert typed_values(FORM, {"age": "old"})[1].startswith("age: ")
    assert typed_values(FORM, {"age": "36"})[1] == "Missing: name."


@pytest.mark.parametrize(("url", "is_link"), [("https://example.com/a?b=1", True), ("javascript:alert(1)", False)])
def test_an_address_to_open_is_a_link_only_if_it_leads_to_the_web(url: str, *, is_link: bool) -> None:
    html = html_of(Question(id="q", kind=QuestionKind.ELICITATION, text="Open this", url=url))
    assert ("<a " in html) is is_link
    assert answers_of(html) == [("allow", "Yes, I opened it"), ("reject", "No")]


@settings(max_examples=50)
@given(st.sampled_from(list(EVERY_KIND.values())), st.text(max_size=40))
def test_nothing_of_a_question_can_leave_its_place(question: Question, text: str) -> None:
    hostile = f'"><script>alert(1)</script>\x1b[2J\u202e{text}'
    asked = replace(question, text=f"{question.text}{hostile}", options=(*question.options, hostile))
    asked = replace(asked, arguments={**question.arguments, "more": hostile})
    html = html_of(asked)
    assert "<script" not in html
    shown = re.sub(r"<textarea.*?</textarea>|<input[^>]*>", "", html, flags=re.DOTALL)
    assert not set(shown) & {"\x1b", "\u202e"}

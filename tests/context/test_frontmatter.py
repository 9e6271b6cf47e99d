"""The headers of rules and skills: what they mean, and that no text breaks the reading of one."""

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from treadle.context.frontmatter import LONGEST_HEADER, Header, braces, read_header
from treadle.context.imports import import_paths

NAMES = st.from_regex(r"[a-z][a-z0-9_-]{0,12}", fullmatch=True)
WORDS = st.text(
    st.characters(codec="utf-8", exclude_characters="\0\r\n\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"), max_size=40
)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a: b", {"a": "b"}),
        ("a: b # why", {"a": "b"}),
        ("a: b#c", {"a": "b#c"}),
        ("a:", {"a": ""}),
        ("a: 'it''s'", {"a": "it's"}),
        ('a: "x: \\"y\\""', {"a": 'x: "y"'}),
        ("a: true\nb: False\nc: 'true'", {"a": True, "b": False, "c": "true"}),
        ("a: one\n  two", {"a": "one two"}),
        ("a: >-\n  one\n  two\nb: c", {"a": "one two", "b": "c"}),
        ("a: |\n  one\n  two", {"a": "one\ntwo"}),
        ("a:\n  - 'x/**' # c\n  - y", {"a": ("x/**", "y")}),
        ("a:\n- x\n- y", {"a": ("x", "y")}),
        ("a: [x, 'y, z', *.{c,d}]", {"a": ("x", "y, z", "*.{c,d}")}),
        ("a: [\n  x,\n  y\n]", {"a": ("x", "y")}),
        ("a: []", {"a": ()}),
        ("metadata:\n  x: 1\nb: c", {"metadata": "", "b": "c"}),
        ("a:\n  one\n  two", {"a": "one two"}),
        ("# a comment\n\nallowed-tools: Bash(git *)", {"allowed-tools": "Bash(git *)"}),
        # BuilderIO/skills#38, chrisbanes/skills#7, malloydata/publisher#1195: colons in words that nothing quotes
        ("a: Use it when: the budget matters", {"a": "Use it when: the budget matters"}),
        ("a: state should live: local, shared\nb: c", {"a": "state should live: local, shared", "b": "c"}),
        ("a: Renders: a table: both", {"a": "Renders: a table: both"}),
        # open-octo/octo-agent#1417, multica-ai/multica#3582, numman-ali/openskills#69: over several lines
        (
            'a:\n  Stress it.\n  "review it". Use the skill: first,',
            {"a": 'Stress it. "review it". Use the skill: first,'},
        ),
        ("n: x\na: |\n  one（@b/c）\n  two: three\n", {"n": "x", "a": "one（@b/c）\ntwo: three"}),
        ("a: >\n  Use it when:\n  (1) x,\n  (2) y", {"a": "Use it when: (1) x, (2) y"}),
        # agentscope-ai/agentscope-java#1030: entries that are no texts
        (
            'w:\n  - Filling forms\nj: {"c":{"b":["node"]}}\nallowed-tools: Bash(agent-browser:*)',
            {"w": ("Filling forms",), "j": '{"c":{"b":["node"]}}', "allowed-tools": "Bash(agent-browser:*)"},
        ),
    ],
)
def test_the_part_of_yaml_that_headers_use_is_understood(text: str, values: dict[str, Any]) -> None:
    maps = {"metadata": {"x": "1"}} if "metadata" in values else {"j": {"c": '{"b":["node"]}'}} if "j" in values else {}
    assert read_header(f"---\n{text}\n---\n\nBody.\n") == Header(values=values, body="Body.\n", maps=maps)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("m:\n  a: true\n  'b_*': no # c\n  \"c\": 'x: y'", {"a": "true", "b_*": "no", "c": "x: y"}),
        ("m: {a: false, '*': true}", {"a": "false", "*": "true"}),
        ('m: {"a":"deny","b c":false}', {"a": "deny", "b c": "false"}),
        ("m: {\n  a: false,\n  b: {c: d, e: f}\n}", {"a": "false", "b": "{c: d, e: f}"}),
        ("m:\n  a:\n    'x *': deny\n    '*': ask\n  b: c", {"a": "'x *': deny '*': ask", "b": "c"}),
        ("m:\n  see https://a.b", None),
        ("m:\n  - a: b", None),
        ("m: a", None),
        ("m:", None),
    ],
)
def test_entries_that_are_maps_are_given_by_themselves(text: str, found: dict[str, str] | None) -> None:
    header = read_header(f"---\n{text}\n---\nBody.\n")
    assert header.maps == ({} if found is None else {"m": found})
    assert header.problem == ""


def test_line_ends_and_a_mark_at_the_beginning_change_nothing() -> None:
    assert read_header("\ufeff---\r\na: b\r\n---\r\nBody.\r\n") == Header(values={"a": "b"}, body="Body.\n")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("---\na: b\nBody", "no --- at its end"),
        (f"---\na: {'x' * LONGEST_HEADER}\n---\nBody", "no --- at its end"),
        ("---\nb: c\nnonsense\n---\nBody", "Line 3"),
        ("---\na: [x\n---\nBody", "Line 2"),
        ("---\na: 'x\n---\nBody", "Line 2"),
    ],
)
def test_a_broken_header_is_said_with_its_line_and_the_rest_counts(text: str, says: str) -> None:
    found = read_header(text)
    assert says in found.problem
    assert found.body.endswith("Body")
    assert found.values in ({}, {"b": "c"})


@given(st.text())
def test_any_text_can_be_read(text: str) -> None:
    found = read_header(text)
    plain = text.removeprefix("\ufeff").replace("\r\n", "\n")
    assert plain.endswith(found.body)
    assert read_header(f"---\n{text}\n---\n").body is not None


@given(st.dictionaries(NAMES, WORDS, max_size=6), st.text(max_size=50))
def test_quoted_values_come_back_as_they_were_written(values: dict[str, str], body: str) -> None:
    lines = "".join("{}: '{}'\n".format(name, value.replace("'", "''")) for name, value in values.items())
    found = read_header(f"---\n{lines}---\n{body}")
    assert (found.problem, found.values) == ("", values)


@given(st.lists(WORDS.filter(str.strip), max_size=5))
def test_a_list_comes_back_in_either_form(items: list[str]) -> None:
    quoted = ["'{}'".format(item.replace("'", "''")) for item in items]
    below = "".join(f"  - {item}\n" for item in quoted)
    assert read_header(f"---\na: [{', '.join(quoted)}]\n---\n").listed("a") == tuple(items)
    if items:
        assert read_header(f"---\na:\n{below}---\n").listed("a") == tuple(items)


def test_globs_are_split_at_commas_but_not_within_braces() -> None:
    header = read_header("---\nglobs: *.ts, src/*.{js,jsx} ,docs/**\n---\n")
    assert header.listed("globs") == ("*.ts", "src/*.{js,jsx}", "docs/**")
    assert braces("src/*.{js,jsx}") == ("src/*.js", "src/*.jsx")
    assert braces("{a,b}/{c,d}") == ("a/c", "a/d", "b/c", "b/d")
    assert braces("{a,b}" * 20) == ("{a,b}" * 20,)


@given(st.text("ab{},*/", max_size=60))
def test_braces_of_any_pattern_are_few(pattern: str) -> None:
    assert 1 <= len(braces(pattern)) <= 64


def test_imports_are_found_outside_of_code_only() -> None:
    text = "See @docs/a.md, `@b.md` and x@y.z.\n```\n@c.md\n```\n- @~/d.md\n@e\\ f.md (@no)\n~~~\n@g.md"
    assert import_paths(text) == ("docs/a.md", "~/d.md", "e f.md")


@given(st.text("@`~ a/.\n\\", max_size=200))
@example("@\\ ")
@example("@``@")
@example("@@\\``")
def test_imports_of_any_text_are_few_and_not_empty(text: str) -> None:
    found = import_paths(text)
    assert len(found) <= 64
    assert all(path.strip() and path.replace(" ", "\\ ") in text for path in found)
    assert len(set(found)) == len(found)


@given(st.lists(WORDS.filter(str.strip), max_size=5))
def test_a_list_in_double_quotes_comes_back(items: list[str]) -> None:
    quoted = ['"{}"'.format(item.replace("\\", "\\\\").replace('"', '\\"')) for item in items]
    assert read_header(f"---\na: [{', '.join(quoted)}]\n---\n").listed("a") == tuple(items)


def test_a_quote_within_quotes_ends_no_item_of_a_list() -> None:
    assert read_header("---\na: ['''[', '0', 'x'' # y', \"b\\\", c\"]\n---\n").listed("a") == (
        "'[",
        "0",
        "x' # y",
        'b", c',
    )


@pytest.mark.parametrize("above", ["\n", "\n\n", " \n", "\r\n", "\ufeff\n", "\t\n\n"])
@pytest.mark.parametrize("fence", ["---", "--- ", "---\t"])
def test_empty_lines_above_a_header_and_blanks_at_its_fences_hide_nothing(above: str, fence: str) -> None:
    header = read_header(f"{above}{fence}\ndescription: words\n{fence}\nBody\n")
    assert (header.text("description"), header.body, header.problem) == ("words", "Body\n", "")


@pytest.mark.parametrize(
    "text", ["\n---\nno entry\n---\nBody\n", "\n---\nrule: it is\n", " ---\na: b\n---\n", "\n---\n---\nBody\n", "\n"]
)
def test_what_stands_below_an_empty_line_and_is_no_header_is_text(text: str) -> None:
    assert read_header(text) == Header(values={}, body=text)

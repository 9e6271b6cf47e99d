"""XML text calls: what is a call, what is text, and what is reported."""

import pytest
from tests.parsing.replies import read, summary

from treadle.parsing import (
    CallComplete,
    CallOpened,
    ContentDelta,
    Malformation,
    ParameterDelta,
    ToolGrammar,
    XmlReader,
)

READ_A = "<read_file>\n<path>a.py</path>\n</read_file>"
READ_B = "<read_file>\n<path>b.py</path>\n</read_file>"


def write(content: str, path: str = "a.py") -> str:
    return f"<write_to_file>\n<path>{path}</path>\n<content>{content}</content>\n</write_to_file>"


def test_text_around_a_call_is_kept() -> None:
    assert read([f"First.\n{READ_A}\nThen."]) == [
        ContentDelta("First.\n"),
        CallOpened(0, "read_file"),
        ParameterDelta(0, "path", "a.py"),
        CallComplete(0, "read_file", {"path": "a.py"}, source=READ_A),
        ContentDelta("\nThen."),
    ]


def test_calls_are_counted_and_text_between_them_is_kept() -> None:
    assert read([f"{READ_A}\nand{READ_B}<done></done>"]) == [
        CallOpened(0, "read_file"),
        ParameterDelta(0, "path", "a.py"),
        CallComplete(0, "read_file", {"path": "a.py"}, source=READ_A),
        ContentDelta("\nand"),
        CallOpened(1, "read_file"),
        ParameterDelta(1, "path", "b.py"),
        CallComplete(1, "read_file", {"path": "b.py"}, source=READ_B),
        CallOpened(2, "done"),
        CallComplete(2, "done", {}, source="<done></done>"),
    ]


def test_parameters_can_be_shown_while_they_stream() -> None:
    reader = XmlReader((ToolGrammar("run", ("command",), ("command",)),))
    chunks = ["<run>", "<com", "mand>\n", "make", " all\n", "&& ls\n</co", "mmand", ">", "</run>", " ok"]
    assert [reader.feed(chunk) for chunk in chunks] == [
        [],
        [],
        [CallOpened(0, "run")],
        [ParameterDelta(0, "command", "make")],
        [ParameterDelta(0, "command", " all")],
        [ParameterDelta(0, "command", "\n&& ls")],
        [],
        [],
        [
            CallComplete(
                0,
                "run",
                {"command": "make all\n&& ls"},
                source="<run><command>\nmake all\n&& ls\n</command></run>",
            )
        ],
        [ContentDelta(" ok")],
    ]


def test_text_is_held_back_only_while_it_may_be_a_tag() -> None:
    reader = XmlReader((ToolGrammar("run", ("command",)),))
    assert [reader.feed(chunk) for chunk in ["a <", "r", "u", "st> ", "1 < 2 ", "<run>", " ", "it"]] == [
        [ContentDelta("a ")],
        [],
        [],
        [ContentDelta("<rust> ")],
        [ContentDelta("1 < 2 ")],
        [],
        [],
        [ContentDelta("<run> "), ContentDelta("it")],
    ]


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("x", "x"),
        ("\nx\n", "x"),
        ("\n\nx\n\n", "\nx\n"),
        ("\r\nx\r\n", "x"),
        ("  x \t", "  x \t"),
        ("\n", ""),
        ("", ""),
        ("\rx\r", "\rx\r"),
        ("&lt;p&gt; &amp;amp; <p>", "&lt;p&gt; &amp;amp; <p>"),
        ("\n<![CDATA[ x ]]>\n", "<![CDATA[ x ]]>"),
        ("a </content> b", "a </content> b"),
        ("\n<content>x</content>\n", "<content>x</content>"),
        ("</content>\n</content>", "</content>\n</content>"),
        ("</content></read_file>", "</content></read_file>"),
        (f"\nDoc:\n{READ_A}\n", f"Doc:\n{READ_A}"),
        (f"\n{write('inner')}\n", write("inner")),
        (f"\n{write(write('twice'))}\n", write(write("twice"))),
        ("end it with </write_to_file> there", "end it with </write_to_file> there"),
        ("the <write_to_file> tool", "the <write_to_file> tool"),
        ("</content>\n<path>again</path>", "</content>\n<path>again</path>"),
        ("```xml\n<read_file>\n```", "```xml\n<read_file>\n```"),
        ("<think>\nno\n</think>", "<think>\nno\n</think>"),
    ],
)
def test_a_parameter_keeps_its_bytes_but_one_framing_newline(written: str, value: str) -> None:
    source = write(written)
    expected = CallComplete(0, "write_to_file", {"path": "a.py", "content": value}, source=source)
    assert read([source], reasoning=True)[-1] == expected
    assert read(list(source), reasoning=True)[-1] == expected


def test_parameters_come_in_any_order() -> None:
    source = "<write_to_file><content>x</content><path>a</path></write_to_file>"
    assert summary(read([source])) == [("write_to_file", {"content": "x", "path": "a"})]


def test_a_parameter_may_have_the_name_of_its_tool() -> None:
    assert summary(read(["<command>\n<command>ls</command>\n</command>"])) == [("command", {"command": "ls"})]


@pytest.mark.parametrize(
    "text",
    [
        "Use <read_file> to read a file.",
        "`<read_file>` takes `<path>`, as in `<read_file><path>a</path></read_file>`.",
        "<read_file> is a tool.",
        "<read_file>a.py</read_file>",
        '<read_file path="a.py">\n</read_file>',
        "<delete_all>\n<path>/</path>\n</delete_all>",
        "The call <read_file><path>a</path> is cut.",
        "The call <read_file></read_file> has no path.",
        "See:\n```xml\n<read_file>\n<path>File path here\n```\nThat was all.",
        "~~~\n<write_to_file>\n<path>a</path>\n</write_to_file>\n~~~\n",
        "a < b and <p> & </read_file> </path> <",
        "<read_file>\n<b>bold</b> and more",
        "<read_file",
        "<read_file>\n\n",
    ],
)
def test_a_tag_in_prose_or_code_is_text_unless_the_call_is_complete_and_known(text: str) -> None:
    assert read([text]) == [ContentDelta(text)]
    assert read(list(text)) == [ContentDelta(text)]


def test_a_complete_call_counts_in_a_code_fence_and_in_prose() -> None:
    assert read([f"```xml\n{READ_A}\n```\nor {READ_B}"]) == [
        ContentDelta("```xml\n"),
        CallOpened(0, "read_file"),
        ParameterDelta(0, "path", "a.py"),
        CallComplete(0, "read_file", {"path": "a.py"}, source=READ_A),
        ContentDelta("\n```\nor "),
        CallOpened(1, "read_file"),
        ParameterDelta(1, "path", "b.py"),
        CallComplete(1, "read_file", {"path": "b.py"}, source=READ_B),
    ]


def test_a_call_after_a_cut_example_in_a_fence_is_found() -> None:
    example = "```xml\n<read_file>\n<path>File path here\n```\n"
    assert summary(read([f"{example}{READ_A} ok"])) == [
        ("text", example),
        ("read_file", {"path": "a.py"}),
        ("text", " ok"),
    ]


@pytest.mark.parametrize(
    ("broken", "code"),
    [
        ("<read_file>\n<path>a.py\n</read_file>", "unclosed_parameter"),
        ("<read_file>\n<path>a.py\n\n", "unclosed_call"),
        ("<read_file>\n<path>a.py</path>\n\n", "unclosed_call"),
        ("<list_files>\n<path>a.py\n<recursive>true</recursive>\n</list_files>", "unclosed_parameter"),
        ("<list_files>\n<path>a.py\n", "unclosed_call"),
        ("<write_to_file>\n<path>a</path>\n<content>\nx\n", "unclosed_call"),
        ("<read_file>\n<path>a</path>\n<line>3</line>\n</read_file>", "unknown_parameter"),
        ("<read_file>\n<file>a</file>\n</read_file>", "unknown_parameter"),
        ("<read_file>\n<path>a</path>\nthanks\n</read_file>", "stray_text"),
        ("<read_file>\n</read_file>", "missing_parameter"),
    ],
)
def test_a_broken_call_does_not_swallow_the_next_one(broken: str, code: str) -> None:
    gap = "" if code == "unclosed_call" else "\n"
    after = [("text", gap)] if gap else []
    for chunks in ([f"{broken}{gap}{READ_B}\nEnd."], list(f"{broken}{gap}{READ_B}\nEnd.")):
        assert summary(read(chunks)) == [
            (code, broken),
            *after,
            ("read_file", {"path": "b.py"}),
            ("text", "\nEnd."),
        ]


def test_calls_after_an_unclosed_one_keep_their_order_and_numbers() -> None:
    cut = "<write_to_file>\n<path>a\n"
    blocks = read([f"{cut}{READ_A}\nthen\n<list_files>\n<path>x</path>\n</list_files>\n<read_file>\n<path>z"])
    assert [block for block in blocks if not isinstance(block, ParameterDelta)] == [
        CallOpened(0, "write_to_file"),
        Malformation(
            "unclosed_call",
            "The call was not run: parameter <path> of <write_to_file> was never closed. "
            "Send the whole call again and end it with </path></write_to_file>.",
            0,
            "write_to_file",
            cut,
        ),
        CallOpened(1, "read_file"),
        CallComplete(1, "read_file", {"path": "a.py"}, source=READ_A),
        ContentDelta("\nthen\n"),
        CallOpened(2, "list_files"),
        CallComplete(2, "list_files", {"path": "x"}, source="<list_files>\n<path>x</path>\n</list_files>"),
        ContentDelta("\n<read_file>\n<path>z"),
    ]


@pytest.mark.parametrize(
    ("call", "what", "remedy"),
    [
        (
            "<read_file>\n<path>a\n</read_file>",
            "<path> was not closed before </read_file>",
            "with </path> after the value",
        ),
        (
            "<read_file>\n<path>a</path> b\n</read_file>",
            "there is text between </path> and </read_file>",
            "with only parameters in it",
        ),
        (
            "<list_files>\n<dir>a</dir>\n</list_files>",
            "<list_files> has no parameter <dir>; its parameters are: <path>, <recursive>",
            "with these only",
        ),
        (
            "<done>\n<dir>a</dir>\n</done>",
            "<done> has no parameter <dir>; its parameters are: none",
            "with these only",
        ),
        (
            "<write_to_file></write_to_file>",
            "<write_to_file> needs <path>, <content>",
            "with every needed parameter",
        ),
        (
            "<write_to_file>\n<path>a",
            "parameter <path> of <write_to_file> was never closed",
            "and end it with </path></write_to_file>",
        ),
    ],
)
def test_a_malformation_says_what_was_wrong_and_what_to_do(call: str, what: str, remedy: str) -> None:
    last = read([call])[-1]
    assert isinstance(last, Malformation)
    assert last.message == f"The call was not run: {what}. Send the whole call again {remedy}."


def test_the_last_call_may_end_with_the_reply() -> None:
    assert summary(read(list("<read_file><path>a</read_file>"))) == [
        ("unclosed_parameter", "<read_file><path>a</read_file>")
    ]


def test_a_call_glued_to_a_sentence_is_reported_when_it_is_laid_out_over_lines() -> None:
    assert summary(read(["I read it:<read_file>\n<path>a"])) == [
        ("text", "I read it:"),
        ("unclosed_call", "<read_file>\n<path>a"),
    ]


def test_an_unclosed_call_is_reported_once_though_its_closing_tag_stands_in_the_value() -> None:
    text = "<read_file>\n<path>a</read_file> is how a call ends."
    assert summary(read([text])) == [("unclosed_call", text)]


def test_thousands_of_unclosed_calls_are_one_malformation() -> None:
    text = "<read_file>\n<path>a\n" * 5_000
    assert summary(read([text])) == [("unclosed_call", text)]


def test_deeply_nested_unclosed_calls_give_back_the_ones_that_close() -> None:
    opened = "<read_file>\n<path>\n" * 3_000
    blocks = summary(read([opened + READ_A]))
    assert blocks == [("unclosed_call", opened), ("read_file", {"path": "a.py"})]

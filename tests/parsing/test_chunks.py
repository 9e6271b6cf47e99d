"""A whole reply as plain data."""

import pytest
from tests.parsing.replies import LIST, READ, TOOLS

from treadle.parsing import CallFragment, parse_chunks

CALL = "<read_file>\n<path>a.py</path>\n</read_file>"


def test_an_xml_reply_becomes_text_and_calls() -> None:
    assert parse_chunks(list(f"Now.\n{CALL}\nDone."), "xml", TOOLS) == {
        "blocks": [
            {"type": "text", "text": "Now.\n", "partial": False},
            {"type": "tool_use", "name": "read_file", "params": {"path": "a.py"}, "partial": False},
            {"type": "text", "text": "\nDone.", "partial": False},
        ],
        "errors": [],
    }


def test_a_call_that_never_closed_is_partial_with_its_parameters_so_far() -> None:
    parsed = parse_chunks(
        ["<write_to_file>\n<path>a</path>\n<content>\nx\n", "<done>\n</done>\n<list_files><path>"],
        "xml",
        TOOLS,
    )
    assert parsed == {
        "blocks": [
            {
                "type": "tool_use",
                "name": "write_to_file",
                "params": {"path": "a", "content": "x"},
                "partial": True,
            },
            {"type": "tool_use", "name": "done", "params": {}, "partial": False},
            {"type": "text", "text": "\n<list_files><path>", "partial": False},
        ],
        "errors": [
            {
                "code": "unclosed_call",
                "message": "The call was not run: parameter <content> of <write_to_file> was never closed."
                " Send the whole call again and end it with </content></write_to_file>.",
                "index": 0,
                "name": "write_to_file",
            }
        ],
    }


def test_a_broken_call_of_a_tool_without_parameters_is_partial() -> None:
    parsed = parse_chunks(["<done>\n<x>\n</done>"], "xml", TOOLS)
    assert parsed["blocks"] == [{"type": "tool_use", "name": "done", "params": {}, "partial": True}]
    assert [error["code"] for error in parsed["errors"]] == ["unknown_parameter"]


def test_native_strings_are_pieces_of_one_call() -> None:
    assert parse_chunks(['{"path"', ': "a"}'], "native", (READ,)) == {
        "blocks": [{"type": "tool_use", "name": "read_file", "params": {"path": "a"}, "partial": False}],
        "errors": [],
    }
    assert parse_chunks(['{"path": "a', "bc"], "native", (READ, LIST)) == {
        "blocks": [{"type": "tool_use", "name": "unnamed", "params": {"path": "abc"}, "partial": True}],
        "errors": [
            {
                "code": "cut_json",
                "message": "The call was not run: its argument JSON is cut off."
                " Send the whole call again; if it is long, split it into several calls.",
                "index": 0,
                "name": "unnamed",
            }
        ],
    }


def test_native_fragments_say_their_call() -> None:
    fragments = [
        CallFragment(index=0, id="a", name="read_file", arguments='{"path":'),
        CallFragment(index=1, id="b", name="list_files"),
        CallFragment(index=0, arguments='"x"}'),
        CallFragment(index=1, arguments='{"recursive": true}'),
    ]
    assert parse_chunks(fragments, "native") == {
        "blocks": [
            {"type": "tool_use", "name": "read_file", "params": {"path": "x"}, "partial": False},
            {"type": "tool_use", "name": "list_files", "params": {"recursive": True}, "partial": False},
        ],
        "errors": [],
    }


def test_an_xml_reply_has_no_fragments() -> None:
    with pytest.raises(TypeError, match="no call fragments"):
        parse_chunks([CallFragment()], "xml", TOOLS)

"""Answers of servers that are not quite what the protocol says: one odd part does not take the others with it."""

import asyncio
import base64
import json
from pathlib import Path
from typing import Any

from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCRequest
from msgspec.structs import replace

from tests.mcp.hubs import call, fake, hub_of, text_of
from tests.mcp.test_resources import resource
from treadle.mcp.fixed_tools import written_prompt
from treadle.mcp.message_framing import answered_id
from treadle.mcp.transports import inside_transport
from treadle.protocol.messages import Image
from treadle.protocol.tools import Outcome

BESIDE = {"type": "text", "text": "beside"}
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def blob(data: bytes) -> str:
    return base64.b64encode(data).decode()


def held(media_type: str, data: bytes) -> dict[str, Any]:
    return {"type": "resource", "resource": {"uri": "a://b", "mimeType": media_type, "blob": blob(data)}}


ODD: dict[str, tuple[Any, str]] = {
    "unknown": ([{"type": "hologram", "data": [1]}, BESIDE], '{"type": "hologram", "data": [1]}\nbeside'),
    "unknown_text": ([{"type": "markdown", "text": "*a*"}, BESIDE], "*a*\nbeside"),
    "unknown_large": (
        [{"type": "x", "data": "y" * 9_000}, BESIDE],
        "[content of the type x, 9,025 characters: left out]\nbeside",
    ),
    "no_type": ([{"a": 1}, 5, None, BESIDE], '{"a": 1}\n5\nnull\nbeside'),
    "plain": ("only words", "only words"),
    "words": (["one", BESIDE], "one\nbeside"),
    "single": (BESIDE, "beside"),
    "object_text": ([{"type": "text", "text": {"a": 1}}, BESIDE], '{"a": 1}\nbeside'),
    "no_text": ([{"type": "text"}, BESIDE], '{"type": "text"}\nbeside'),
    "annotated": ([{**BESIDE, "annotations": {"audience": ["everyone"], "priority": 7}}], "beside"),
    "link": (
        [{"type": "resource_link", "uri": "a://b"}, BESIDE],
        "[resource a://b (a://b); access_mcp_resource reads it]\nbeside",
    ),
    "held": ([{"type": "resource", "resource": {"text": "inside"}}, BESIDE], "[resource unnamed:]\ninside\nbeside"),
    "csv": ([held("text/csv", "a,b\nä,2\n".encode())], "[resource a://b, text/csv]\na,b\nä,2"),
    "utf16": ([held("text/csv", "a;ä".encode("utf-16"))], "[resource a://b, text/csv]\na;ä"),
    "latin1": (
        [held("text/csv; charset=iso-8859-1", b"a;\xe4")],
        "[resource a://b, text/csv; charset=iso-8859-1]\na;ä",
    ),
    "json": ([held("application/octet-stream", b"{}")], "[resource a://b, application/octet-stream]\n{}"),
    "binary": ([held("text/csv", b"\x00\x01\xff")], "[resource a://b, text/csv] (3 bytes, not text: left out)"),
    "charset": (
        [held("text/csv; charset=none-such", b"a")],
        "[resource a://b, text/csv; charset=none-such] (3 bytes, not text: left out)",
    ),
}
IMAGES: dict[str, dict[str, Any]] = {
    "untyped": {"type": "image", "data": PNG},
    "wrong_type": {"type": "image", "data": PNG, "mimeType": 5},
    "of_claude": {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
}


async def test_an_odd_part_of_a_result_leaves_the_text_beside_it(tmp_path: Path) -> None:
    answers: dict[str, Any] = {f"tools/call {name}": {"content": content} for name, (content, _) in ODD.items()}
    answers |= {f"tools/call {name}": {"content": [image, BESIDE]} for name, image in IMAGES.items()}
    answers["tools/call structured_only"] = {"structuredContent": {"a": 1}}
    answers["tools/call no_image"] = {"content": [{"type": "image", "data": blob(b"<svg/>"), "mimeType": "image/png"}]}
    async with answering(tmp_path, answers) as hub:
        for name, (_, shown) in ODD.items():
            result = await call(hub, f"mcp__fake__{name}")
            assert (name, text_of(result), result.outcome) == (name, shown, Outcome.OK)
        for name in IMAGES:
            result = await call(hub, f"mcp__fake__{name}")
            assert text_of(result) == "beside"
            assert [one.media_type for one in result.content if isinstance(one, Image)] == ["image/png"], name
        assert text_of(await call(hub, "mcp__fake__structured_only")) == '{"a":1}'
        shown = text_of(await call(hub, "mcp__fake__no_image"))
        assert shown == "[the image is no PNG, JPEG, GIF or WebP, which models accept. Continue without it.]"


async def test_an_answer_that_cannot_be_read_says_what_is_wrong_without_a_link(tmp_path: Path) -> None:
    async with answering(tmp_path, {"tools/call x": {"isError": "perhaps", "content": []}}) as hub:
        result = await call(hub, "mcp__fake__x")
        assert result.outcome is Outcome.FAILED
        assert "isError" in text_of(result)
        assert "https://" not in text_of(result)


ODD_LINES = {
    "half": (
        r'{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"a\ud83db \ud83d\ude00 \\ud83d"}]}}',
        True,
    ),
    "latin": ('{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"caf\xe9"}]}}', True),
    "nan": (
        '{"result":{"content":[],"structuredContent":{"mean":NaN,"most":-Infinity}},"jsonrpc":"2.0","id":ID}',
        True,
    ),
    "cut": ('{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","te}', False),
    "twice": ('{"result":{"content":[]}},"jsonrpc":"2.0","id":ID}', False),
    "shape": ('{"jsonrpc":"2.0","id":ID,"result":"words"}', False),
    "deep": ('{"jsonrpc":"2.0","id":ID,"result":{"content":' + "[" * 20_000 + "]" * 20_000 + "}}", False),
}


async def test_an_answer_in_odd_json_is_read_or_fails_its_call_immediately(tmp_path: Path) -> None:
    said = {}
    async with answering(tmp_path, {f"tools/call {name}": line for name, (line, _) in ODD_LINES.items()}) as hub:
        for name, (_, is_read) in ODD_LINES.items():
            result = await call(hub, f"mcp__fake__{name}")
            assert (name, result.outcome) == (name, Outcome.OK if is_read else Outcome.FAILED)
            said[name] = text_of(result).partition("read:")[0]
        assert text_of(await call(hub, "mcp__fake__echo")) == "echo {}"
    assert said == {
        "half": "a\ufffdb \U0001f600 \\ud83d",
        "latin": "caf\ufffd",
        "nan": '{"mean":null,"most":null}',
        "cut": "the answer cannot be ",
        "twice": "the answer cannot be ",
        "shape": "the answer is not a message of JSON-RPC",
        "deep": "the answer cannot be ",
    }


def test_only_an_answer_fails_the_call_with_its_id() -> None:
    lines = (
        b'{"jsonrpc":"2.0","id":7,"method":"ping","params":{"result":',
        b'log "id":7, "result": x',
        b'"id":7,"error":',
    )
    assert [answered_id(line) for line in lines] == [b"", b"", b""]
    assert answered_id(b'{"id":7,"error":{"code":') == b"7"


async def test_an_answer_of_the_host_in_an_odd_shape_fails_its_call() -> None:
    async def exchange(_: dict[str, Any]) -> dict[str, Any] | None:
        return {"result": "words"}

    async with inside_transport(exchange) as (read, write):
        await write.send(SessionMessage(JSONRPCRequest(jsonrpc="2.0", id=3, method="tools/call")))
        async with asyncio.timeout(90):
            answer = (await read.receive()).message
    assert (answer.id, answer.error.message) == (3, "the answer is not a message of JSON-RPC")


async def test_odd_entries_of_lists_and_odd_messages_leave_the_others(tmp_path: Path) -> None:
    messages = ["plain", {"role": "system", "content": BESIDE}, {"role": "user", "content": [BESIDE, {"type": "x"}]}]
    resources = [{"uri": "a://1", "name": "n", "size": "much"}, {"uri": "a://2"}, {"name": "no address"}, "a", None]
    answers = {
        "resources/list": {"resources": resources},
        "resources/templates/list": {"resourceTemplates": [{"uriTemplate": "a://{b}"}, 7]},
        "resources/read a://1": {"contents": [{"uri": "a://1", "text": {"a": 1}}, {"mimeType": "x"}, "words"]},
        "prompts/list": {"prompts": [{"name": "p", "arguments": "none"}, {"description": "It has no name."}]},
        "prompts/get p": {"messages": messages},
    }
    async with answering(tmp_path, answers) as hub:
        listed = text_of(await resource(hub, server_name="fake"))
        assert listed.splitlines() == [
            "a://1  n",
            "a://2  a://2",
            "a://{b}  a://{b} (a template: replace what is in braces)",
        ]
        read = text_of(await resource(hub, server_name="fake", uri="a://1"))
        assert (
            read == '[resource a://1]\n{"a": 1}\n[resource unnamed:, x]\n{"mimeType": "x"}\n[resource unnamed:]\nwords'
        )
        assert hub.health()[0].prompts == ("p",)
        said = await hub.request("fake", lambda connection: written_prompt("p", {}, connection))
        assert said == 'plain\n\nbeside\n\nbeside\n\n{"type": "x"}'


def answering(folder: Path, answers: dict[str, Any]) -> Any:
    """Connect to a server that gives these answers."""
    return hub_of(folder, replace(fake(), env={"FAKE_ANSWERS": json.dumps(answers)}))

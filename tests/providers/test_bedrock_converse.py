"""The Converse API: what is sent for each kind of block and model, and replies with all that can go wrong."""

import base64
import json
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote

import msgspec
import pytest
from tests.providers.support import (
    READ,
    called,
    collect,
    failure_of,
    fixed_server,
    provider_at,
    raw_server,
    request,
    response,
    result,
    user,
)

from treadle.protocol.messages import (
    ContentBlock,
    Document,
    Image,
    Message,
    RedactedThinking,
    Role,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    WireData,
)
from treadle.protocol.models import (
    ErrorKind,
    ModelRequest,
    ReplyStop,
    StreamCallArguments,
    StreamCallDone,
    StreamCallStart,
    StreamEvent,
    StreamStop,
    StreamText,
    StreamThinkingDone,
)
from treadle.protocol.usage import Usage
from treadle.providers.aws_signature import AwsCredentials, AwsSigner
from treadle.providers.bedrock_converse import BedrockConverse
from treadle.providers.endpoint import Endpoint
from treadle.providers.event_stream import frame
from treadle.providers.http_provider import HttpProvider
from treadle.providers.scripted.script import SayText, Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer

OWN = WireData(api="bedrock_converse:bedrock", data={})
CLAUDE = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
POINT = {"cachePoint": {"type": "default"}}
AWS_EVENTS = {"Content-Type": "application/vnd.amazon.eventstream"}


def body(asked: ModelRequest) -> dict[str, Any]:
    call = BedrockConverse(Endpoint(name="bedrock", base_url="https://h")).prepare(asked)
    return dict(json.loads(call.body))


def sent(*blocks: ContentBlock, model: str = "meta.llama", role: Role = Role.USER) -> list[dict[str, Any]]:
    asked = msgspec.structs.replace(request(Message(role=role, content=blocks)), model=model)
    content: list[dict[str, Any]] = body(asked)["messages"][0]["content"]
    return content


def test_a_request_has_the_form_of_the_api() -> None:
    asked = msgspec.structs.replace(request(user("Hi"), called(), tools=(READ,)), model="meta.llama", max_tokens=50)
    asked = msgspec.structs.replace(
        asked, messages=(*asked.messages, Message(role=Role.USER, content=(result("x", is_error=True),)))
    )
    tool = {"name": "read_file", "description": "Reads a file.", "inputSchema": {"json": READ.parameters}}
    assert body(asked) == {
        "messages": [
            {"role": "user", "content": [{"text": "Hi"}]},
            {
                "role": "assistant",
                "content": [
                    {"text": "Let me look."},
                    {"toolUse": {"toolUseId": "call_0_0", "name": "read_file", "input": {"path": "a.py"}}},
                ],
            },
            {"role": "user", "content": [{"toolResult": {"toolUseId": "call_0_0", "content": [{"text": "x"}]}}]},
        ],
        "system": [{"text": "Be brief."}],
        "inferenceConfig": {"maxTokens": 50},
        "toolConfig": {"tools": [{"toolSpec": tool}]},
    }


def test_the_model_is_named_in_the_path_even_if_it_is_an_arn() -> None:
    arn = "arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude-sonnet-4-5-20250929-v1:0"
    asked = msgspec.structs.replace(request(), model=arn)
    url = BedrockConverse(Endpoint(name="bedrock", base_url="https://h")).prepare(asked).url
    assert url == (
        "https://h/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Ainference-profile%2F"
        "us.anthropic.claude-sonnet-4-5-20250929-v1%3A0/converse-stream"
    )


def test_claude_gets_cache_points_and_the_status_of_results_and_others_do_not() -> None:
    messages = (user("One"), called(), Message(role=Role.USER, content=(result("x", is_error=True),)))
    value = body(msgspec.structs.replace(request(*messages), model=CLAUDE))
    failed = {"toolUseId": "call_0_0", "content": [{"text": "x"}], "status": "error"}
    assert value["system"] == [{"text": "Be brief."}, POINT]
    assert [message["content"][-1] for message in value["messages"] if message["role"] == "user"] == [POINT, POINT]
    assert value["messages"][2]["content"][0] == {"toolResult": failed}
    other = body(msgspec.structs.replace(request(*messages), model="meta.llama"))
    assert "cachePoint" not in json.dumps(other)
    assert "status" not in json.dumps(other)


def test_files_go_out_with_names_that_the_api_takes_once_each() -> None:
    pdf = Document(media_type="application/pdf", data="UEQ=", title="Übersicht (1).pdf")
    assert sent(Image(media_type="image/jpg", data="SU0="), pdf, pdf) == [
        {"image": {"format": "jpeg", "source": {"bytes": "SU0="}}},
        {"document": {"format": "pdf", "name": "bersicht (1) pdf 1", "source": {"bytes": "UEQ="}}},
        {"document": {"format": "pdf", "name": "bersicht (1) pdf 2", "source": {"bytes": "UEQ="}}},
        {"text": "(attached)"},
    ]


def test_what_the_api_does_not_take_is_said_in_words() -> None:
    found = sent(Image(media_type="image/tiff", data="SU0="), Document(media_type="a/b", data="UEQ=", title="x"))
    assert found == [
        {"text": "(an image of the type image/tiff, which cannot be sent)"},
        {"text": "(x: a/b cannot be sent)"},
    ]


def test_results_come_first_and_ids_fit() -> None:
    long = ToolUse(id="x" * 90, name="read_file", arguments={}, wire_id="fc:" + "1" * 80)
    answer = ToolResult(call_id="x" * 90, name="read_file", content=(), wire_id="fc:" + "1" * 80)
    messages = (
        user("Hi"),
        Message(role=Role.ASSISTANT, content=(long,)),
        Message(role=Role.USER, content=(Text(text="And?"), answer)),
    )
    value = body(request(*messages))["messages"]
    call_id = value[1]["content"][0]["toolUse"]["toolUseId"]
    assert len(call_id) == 64
    assert value[2]["content"] == [
        {"toolResult": {"toolUseId": call_id, "content": [{"text": "(no output)"}]}},
        {"text": "And?"},
    ]


def test_reasoning_goes_back_signed_or_encrypted_and_only_where_it_came_from() -> None:
    blocks = (
        Thinking(text="Hm", signature="SIG", wire=OWN),
        RedactedThinking(data="UkVE", wire=OWN),
        Thinking(text="unsigned", wire=OWN),
        Thinking(text="foreign", signature="SIG", wire=WireData(api="anthropic_messages:anthropic", data={})),
        Text(text="Yes."),
    )
    assert sent(*blocks, role=Role.ASSISTANT) == [
        {"reasoningContent": {"reasoningText": {"text": "Hm", "signature": "SIG"}}},
        {"reasoningContent": {"redactedContent": "UkVE"}},
        {"text": "Yes."},
    ]


@pytest.mark.parametrize(
    ("model", "budget", "max_tokens", "fields"),
    [
        (CLAUDE, 4000, None, {"thinking": {"type": "enabled", "budget_tokens": 4000}}),
        (CLAUDE, 10, None, {"thinking": {"type": "enabled", "budget_tokens": 1024}}),
        (CLAUDE, 4000, 3000, {"thinking": {"type": "enabled", "budget_tokens": 2999}}),
        (CLAUDE, 4000, 1024, None),
        (CLAUDE, 0, None, None),
        (
            "eu.anthropic.claude-opus-4-6-v1",
            4000,
            None,
            {"thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}},
        ),
        (
            "us.amazon.nova-2-lite-v1:0",
            9000,
            None,
            {"reasoningConfig": {"type": "enabled", "maxReasoningEffort": "medium"}},
        ),
        ("openai.gpt-oss-120b-1:0", 90_000, None, {"reasoning_effort": "high"}),
        ("meta.llama4", 4000, None, None),
    ],
)
def test_thinking_is_asked_for_as_each_maker_wants_it(
    model: str, budget: int, max_tokens: int | None, fields: dict[str, Any] | None
) -> None:
    asked = msgspec.structs.replace(request(), model=model, thinking_budget=budget, max_tokens=max_tokens)
    assert body(asked).get("additionalModelRequestFields") == fields


def test_claude_does_not_think_after_calls_that_another_model_made() -> None:
    messages = (user("Hi"), called(), Message(role=Role.USER, content=(result("x"),)))
    asked = msgspec.structs.replace(request(*messages), model=CLAUDE, thinking_budget=4000)
    assert "additionalModelRequestFields" not in body(asked)


def event(name: str, value: dict[str, Any]) -> bytes:
    return frame(json.dumps(value).encode(), message_type="event", event_type=name)


async def stream(data: bytes) -> list[StreamEvent]:
    async with fixed_server("200 OK", AWS_EVENTS, data) as url:
        return await collect(provider_at("bedrock", url), request())


async def test_encrypted_reasoning_in_pieces_is_joined_and_a_call_of_the_provider_is_not_ours() -> None:
    pieces = [base64.b64encode(piece).decode() for piece in (b"abcd", b"ef")]
    data = b"".join(
        (
            *(
                event(
                    "contentBlockDelta",
                    {"contentBlockIndex": 0, "delta": {"reasoningContent": {"redactedContent": piece}}},
                )
                for piece in pieces
            ),
            event("contentBlockStop", {"contentBlockIndex": 0}),
            event(
                "contentBlockStart",
                {"contentBlockIndex": 1, "start": {"toolUse": {"name": "code", "type": "server_tool_use"}}},
            ),
            event("contentBlockDelta", {"contentBlockIndex": 1, "delta": {"toolUse": {"input": "{}"}}}),
            event("contentBlockStop", {"contentBlockIndex": 1}),
            event("contentBlockStart", {"contentBlockIndex": 2, "start": {"toolUse": {"name": "now"}}}),
            event("contentBlockStop", {"contentBlockIndex": 2}),
            event("messageStop", {"stopReason": "tool_use"}),
            event("metadata", {"usage": {"inputTokens": 3, "outputTokens": 2, "cacheReadInputTokens": 9}}),
        )
    )
    assert await stream(data) == [
        StreamThinkingDone(redacted=base64.b64encode(b"abcdef").decode(), wire=OWN),
        StreamCallStart(index=2, name="now"),
        StreamCallArguments(index=2, text="{}"),
        StreamCallDone(index=2),
        StreamStop(reason=ReplyStop.TOOL_USE, usage=Usage(input_tokens=3, output_tokens=2, cache_read_tokens=9)),
    ]


@pytest.mark.parametrize(
    ("stop", "reason"),
    [
        ("end_turn", ReplyStop.END_TURN),
        ("stop_sequence", ReplyStop.END_TURN),
        ("max_tokens", ReplyStop.MAX_TOKENS),
        ("model_context_window_exceeded", ReplyStop.MAX_TOKENS),
        ("guardrail_intervened", ReplyStop.REFUSAL),
        ("content_filtered", ReplyStop.REFUSAL),
    ],
)
async def test_a_reply_without_figures_is_whole_when_its_body_ends(stop: str, reason: ReplyStop) -> None:
    data = event("contentBlockDelta", {"delta": {"text": "Hi"}}) + event("messageStop", {"stopReason": stop})
    assert await stream(data) == [StreamText(text="Hi"), StreamStop(reason=reason, usage=Usage())]


@pytest.mark.parametrize(
    ("name", "message", "kind"),
    [
        ("throttlingException", "Too many tokens, please wait before trying again.", ErrorKind.RATE_LIMIT),
        ("serviceUnavailableException", "Try again", ErrorKind.OVERLOADED),
        ("internalServerException", "Oops", ErrorKind.SERVER),
        ("modelStreamErrorException", "Oops", ErrorKind.SERVER),
        ("modelTimeoutException", "Slow", ErrorKind.TIMEOUT),
        ("validationException", "Input is too long for requested model.", ErrorKind.CONTEXT_TOO_LONG),
        ("validationException", "Malformed input request", ErrorKind.BAD_REQUEST),
        ("newException", "What?", ErrorKind.SERVER),
    ],
)
async def test_exceptions_inside_the_stream_are_typed(name: str, message: str, kind: ErrorKind) -> None:
    said = frame(json.dumps({"message": message}).encode(), message_type="exception", exception_type=name)
    async with fixed_server("200 OK", AWS_EVENTS, event("messageStart", {"role": "assistant"}) + said) as url:
        failed = await failure_of(provider_at("bedrock", url), request())
    assert failed.error.kind is kind
    assert message in failed.error.message


@pytest.mark.parametrize("stop", ["malformed_tool_use", "malformed_model_output"])
async def test_a_reply_that_its_model_broke_can_be_tried_again(stop: str) -> None:
    async with fixed_server("200 OK", AWS_EVENTS, event("messageStop", {"stopReason": stop})) as url:
        failed = await failure_of(provider_at("bedrock", url), request())
    assert (failed.error.kind, stop in failed.error.message) == (ErrorKind.MALFORMED_STREAM, True)


async def test_a_damaged_frame_is_a_malformed_stream() -> None:
    data = event("contentBlockDelta", {"delta": {"text": "Hi"}})
    async with fixed_server("200 OK", AWS_EVENTS, data[:-1] + b"\x00") as url:
        failed = await failure_of(provider_at("bedrock", url), request())
    assert failed.error.kind is ErrorKind.MALFORMED_STREAM


@pytest.mark.parametrize(
    ("status", "kind_header", "text", "kind"),
    [
        (429, "ThrottlingException:http://internal.amazon.com/", "Too many tokens", ErrorKind.RATE_LIMIT),
        (403, "UnrecognizedClientException", "The security token is invalid.", ErrorKind.AUTHENTICATION),
        (403, "ExpiredTokenException", "The security token has expired", ErrorKind.AUTHENTICATION),
        (403, "AccessDeniedException", "You don't have access to the model", ErrorKind.PERMISSION),
        (
            403,
            "AccessDeniedException",
            "Authentication failed: Please make sure your API Key is valid.",
            ErrorKind.AUTHENTICATION,
        ),
        (400, "ValidationException", "Input is too long for requested model.", ErrorKind.CONTEXT_TOO_LONG),
        (400, "ServiceQuotaExceededException", "Quota", ErrorKind.RATE_LIMIT),
        (404, "ResourceNotFoundException", "Model use case details have not been submitted", ErrorKind.NOT_FOUND),
        (424, "ModelErrorException", "Oops", ErrorKind.SERVER),
        (408, "ModelTimeoutException", "Slow", ErrorKind.TIMEOUT),
        (503, "ServiceUnavailableException", "Later", ErrorKind.OVERLOADED),
    ],
)
async def test_refusals_are_typed_by_the_header_of_aws(
    status: int, kind_header: str, text: str, kind: ErrorKind
) -> None:
    headers = {"Content-Type": "application/json", "x-amzn-ErrorType": kind_header, "x-amzn-RequestId": "r-1"}
    async with fixed_server(f"{status} No", headers, json.dumps({"Message": text}).encode()) as url:
        failed = await failure_of(provider_at("bedrock", url), request())
    assert (failed.error.kind, failed.error.status, failed.error.request_id) == (kind, status, "r-1")
    assert text in failed.error.message


async def found() -> AwsCredentials:
    return AwsCredentials(access_key="AKID", secret_key="secret-key", session_token="session-token")


async def test_a_signed_request_reaches_a_server_and_what_it_repeats_of_the_proof_is_hidden() -> None:
    signer = AwsSigner(found, region="eu-west-1", service="bedrock", now=lambda: datetime(2026, 1, 2, tzinfo=UTC))
    async with ScriptedServer(Script(turns=(Turn(items=(SayText(text="Hi"),)),))) as server:
        place = Endpoint(name="bedrock", base_url=server.base_url)
        events = await collect(HttpProvider(place, BedrockConverse(place), signer), request())
        headers = server.requests[0].headers
    assert isinstance(events[-1], StreamStop)
    assert headers["authorization"].startswith("AWS4-HMAC-SHA256 Credential=AKID/20260102/eu-west-1/bedrock/")
    assert (headers["x-amz-security-token"], headers["x-amz-date"]) == ("session-token", "20260102T000000Z")

    async def repeat(reader: Any, writer: Any) -> None:
        text = json.dumps({"message": "the canonical string is x-amz-security-token:session-token"}).encode()
        writer.write(response("403 No", {"Content-Type": "application/json"}, text))
        await writer.drain()

    async with raw_server(repeat) as url:
        place = Endpoint(name="bedrock", base_url=url)
        failed = await failure_of(HttpProvider(place, BedrockConverse(place), signer), request())
    assert failed.error.message.endswith("x-amz-security-token:[secret].")


def test_the_longer_window_is_asked_for_in_a_field() -> None:
    converse = BedrockConverse(Endpoint(name="bedrock", base_url="https://h"))
    for model, beta in ((f"{CLAUDE}:1m", ["context-1m-2025-08-07"]), (CLAUDE, None), ("amazon.nova-pro:1m", None)):
        call = converse.prepare(msgspec.structs.replace(request(), model=model))
        fields = json.loads(call.body).get("additionalModelRequestFields", {})
        assert fields.get("anthropic_beta") == beta
        assert unquote(call.url).endswith(f"/model/{CLAUDE if beta else model}/converse-stream")

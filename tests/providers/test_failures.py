"""Refusals of many vendors, as they word them, sorted into one tree."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.protocol.models import ErrorKind, ModelError
from treadle.providers.endpoint import Endpoint
from treadle.providers.failures import MAX_MESSAGE, from_response
from treadle.providers.provider_problems import ProviderProblem, error_kind, problem_in

NOW = 1_800_000_000.0
PLACE = Endpoint(name="acme", base_url="https://api.example.org/v1", api_key="sk-secret")


@pytest.mark.parametrize(
    "message",
    [
        "prompt is too long: 210000 tokens > 200000 maximum",
        "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens.",
        "Your input exceeds the context window of this model. Please adjust your input and try again.",
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length",
        "This endpoint's maximum context length is 32768 tokens.",
        "the request exceeds the available context size, try increasing it",
        "Please reduce the length of the messages or completion.",
        "Input is too long for requested model.",
        "This model's maximum prompt length is 131072 but the request contains 140000 tokens.",
        "Range of input length should be [1, 30720]",
        "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
        "tokens in request more than max tokens allowed: exceeds the maximum number of tokens",
        "Trying to keep the first 9000 tokens when context the overflows. The context length is only 4096 tokens",
        "The prompt is too long: 267657, model maximum context length: 262143",  # can1357/oh-my-pi#1618
        "maximum context length is 262144 tokens. However, you requested about 284283",  # openclaw/openclaw#85921
    ],
)
def test_a_context_that_is_too_long_is_recognised_in_every_wording(message: str) -> None:
    assert error_kind(400, ProviderProblem(message=message)) is ErrorKind.CONTEXT_TOO_LONG


@pytest.mark.parametrize(
    ("status", "body", "kind", "text"),
    [
        (
            429,
            '{"error":{"code":429,"message":"Quota exceeded","status":"RESOURCE_EXHAUSTED"}}',
            ErrorKind.RATE_LIMIT,
            "Quota exceeded",
        ),
        (
            400,
            '[{"error":{"message":"API key not valid.","status":"INVALID_ARGUMENT"}}]',
            ErrorKind.AUTHENTICATION,
            "API",
        ),
        (429, '{"error":{"code":"1113","message":"Insufficient balance"}}', ErrorKind.BALANCE, "Insufficient"),
        (
            402,
            '{"error":{"message":"Insufficient Balance","code":"invalid_request_error"}}',
            ErrorKind.BALANCE,
            "Insuff",
        ),
        (
            429,
            '{"error":{"message":"Provider returned error","metadata":{"raw":"upstream busy"}}}',
            ErrorKind.RATE_LIMIT,
            "busy",
        ),
        (
            429,
            '{"error":{"message":"Request too large: tokens per minute","code":"rate_limit_exceeded"}}',
            ErrorKind.RATE_LIMIT,
            "",
        ),
        (404, '{"detail":"Not Found"}', ErrorKind.NOT_FOUND, "Not Found"),
        (422, '{"detail":[{"msg":"field required","loc":["model"]}]}', ErrorKind.BAD_REQUEST, "field required"),
        (
            422,
            '{"object":"error","message":{"detail":[{"msg":"Extra inputs"}]}}',
            ErrorKind.BAD_REQUEST,
            "Extra inputs",
        ),
        (400, '{"error":"model is required"}', ErrorKind.BAD_REQUEST, "model is required"),
        (400, '{"message":"The provided model identifier is invalid."}', ErrorKind.BAD_REQUEST, "identifier"),
        (500, '{"type":"error","error":{"type":"api_error","message":"Internal"}}', ErrorKind.SERVER, "Internal"),
        (400, '{"error":{"code":"content_filter","message":"flagged"}}', ErrorKind.CONTENT_FILTER, "flagged"),
        (418, "short and stout", ErrorKind.BAD_REQUEST, "short and stout"),
        (500, "", ErrorKind.SERVER, "HTTP status 500"),
    ],
)
def test_error_bodies_of_many_vendors_are_understood(status: int, body: str, kind: ErrorKind, text: str) -> None:
    error = from_response(PLACE, status, {}, body.encode(), now=NOW)
    assert (error.kind, error.status) == (kind, status)
    assert text in error.message


def test_a_refusal_says_who_what_and_why_with_its_request_id() -> None:
    body = b'{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_1"}'
    assert from_response(PLACE, 529, {"retry-after": "3"}, body, now=NOW) == ModelError(
        kind=ErrorKind.OVERLOADED,
        message="acme is overloaded: Overloaded.",
        status=529,
        request_id="req_1",
        retry_after=3.0,
    )
    assert from_response(PLACE, 500, {"x-request-id": "r-2"}, b"", now=NOW).request_id == "r-2"


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key_is_named_by_its_origin_and_its_end_with_what_to_do(status: int) -> None:
    place = Endpoint(
        name="acme",
        base_url="https://api.example.org/v1",
        api_key="sk-secret-0000-1234",
        key_origin="ACME_KEY",
        key_variable="ACME_KEY",
    )
    error = from_response(place, status, {}, b'{"error":{"message":"No: sk-secret-0000-1234"}}', now=NOW)
    assert error.message.endswith(": No: [secret]. The key comes from ACME_KEY and ends in …1234.")
    assert "`treadle login acme`. ACME_KEY overrides a stored key. Change or unset it." in error.fix
    stored = msgspec.structs.replace(place, key_origin="the system's keyring", key_variable="", api_key="short")
    error = from_response(stored, status, {}, b"", now=NOW)
    assert error.message.endswith(". The key comes from the system's keyring.")
    assert error.fix.endswith("`treadle login acme`.")
    account = msgspec.structs.replace(place, api_key="", key_origin="AWS_PROFILE", key_variable="")
    error = from_response(account, status, {}, b"", now=NOW)
    assert error.message.endswith(". The proof of who asks comes from AWS_PROFILE.")
    assert error.fix == "Check AWS_PROFILE, or store a key: `treadle login acme`."
    assert from_response(place, 500, {}, b"", now=NOW).fix == ""


def test_messages_are_bounded_and_free_of_the_key() -> None:
    body = b'{"error":{"message":"sk-secret ' + b"x" * 10_000 + b'"}}'
    message = from_response(PLACE, 400, {}, body, now=NOW).message
    assert "sk-secret" not in message
    assert len(message) <= MAX_MESSAGE + 4


@settings(max_examples=80)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=8),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["error", "message", "code", "detail", "metadata", "details"]), inner, max_size=4
            )
        ),
        max_leaves=12,
    )
)
def test_no_json_breaks_the_reading_of_a_refusal(value: object) -> None:
    body = msgspec.json.encode(value)
    problem_in(body)
    assert from_response(PLACE, 400, {}, body, now=NOW).status == 400


@pytest.mark.parametrize(
    ("message", "window"),
    [
        ("prompt is too long: 210000 tokens > 200000 maximum", 200_000),
        ("This model's maximum context length is 131072 tokens. However, you requested 140000 tokens.", 131_072),
        ("This endpoint's maximum context length is 32,768 tokens.", 32_768),
        ("The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).", 1_048_576),
        ("input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease", 200_000),
        ("request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it", 4096),
        ("Prompt contains 40000 tokens, too large for model with 32768 maximum context length", 32_768),
        ("This model's maximum prompt length is 131072 but the request contains 140000 tokens.", 131_072),
        ("Range of input length should be [1, 129024]", 129_024),
        (
            "Trying to keep the first 9000 tokens when context the overflows. The context length is only 4096 tokens",
            4096,
        ),
        ("Invalid request: Your request exceeded model token limit: 8192 (requested: 9000)", 8192),
        ("The prompt is too long: 140000, model maximum context length: 131071", 131_071),
        ("prompt token count of 131000 exceeds the limit of 128000", 128_000),
        ("Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193. Given: 9000", 8193),
        ("too many tokens: total number of tokens exceeds the limit of 4081. Try a shorter prompt.", 4081),
        ("context window exceeds limit (2013)", None),
        ("Your input exceeds the context window of this model.", None),
        ("maximum context length is 7 tokens", None),
        ("Input is too long for requested model.", None),
    ],
)
def test_the_window_is_read_from_the_words_of_the_refusal(message: str, window: int | None) -> None:
    body = msgspec.json.encode({"error": {"message": message}})
    error = from_response(PLACE, 400, {}, body, now=NOW)
    assert (error.kind, error.window) == (ErrorKind.CONTEXT_TOO_LONG, window)


def test_a_window_in_a_field_is_read_and_a_number_in_another_refusal_is_none() -> None:
    body = b'{"error":{"message":"too long","type":"exceed_context_size_error","n_prompt_tokens":9000,"n_ctx":8192}}'
    assert from_response(PLACE, 400, {}, body, now=NOW).window == 8192
    limited = b'{"error":{"message":"maximum context length is 8192 tokens","code":"rate_limit_exceeded"}}'
    assert from_response(PLACE, 429, {}, limited, now=NOW).window is None

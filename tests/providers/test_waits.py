"""How long to wait, as vendors say it in headers and bodies."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.providers.endpoint import Endpoint
from treadle.providers.failures import from_response
from treadle.providers.waits import LONGEST_WAIT, retry_after, used_up

NOW = 1_800_000_000.0
PLACE = Endpoint(name="acme", base_url="https://api.example.org/v1", api_key="sk-secret")

_WORDS = [
    "",
    "0",
    "6ms",
    "1m30s",
    "-1",
    "nan",
    "inf",
    "1e9",
    "9" * 400,
    "2027-01-15T08:00:20Z",
    "0001-01-01T00:00:00+14",
]
_NAMES = [
    f"{vendor}ratelimit-{name}"
    for vendor in ("", "x-", "anthropic-")
    for name in ("reset", "remaining", "reset-tokens", "remaining-tokens", "tokens-reset", "tokens-remaining", "reset-")
]

_SUBSCRIPTION = {
    "anthropic-ratelimit-unified-status": "rejected",
    "anthropic-ratelimit-unified-5h-status": "rejected",
    "anthropic-ratelimit-unified-5h-reset": "1800003600",
    "anthropic-ratelimit-unified-7d-status": "allowed_warning",
    "anthropic-ratelimit-unified-7d-reset": "1800400000",
    "anthropic-ratelimit-unified-reset": "1800003600",
}
"""The five hours of a subscription are used up, its week is not."""


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": " 1.5 "}, 1.5),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "9" * 400}, LONGEST_WAIT),
        ({"retry-after": "99999999"}, LONGEST_WAIT),
        ({"retry-after": ""}, None),
        ({"retry-after": "1800000030"}, 30.0),
        ({"retry-after": "1700000000"}, 0.0),
        ({"retry-after": "1800000030000"}, 30.0),
        ({"retry-after": "Fri, 15 Jan 2027 08:00:20 GMT"}, 20.0),
        ({"retry-after": "Friday, 15-Jan-27 08:00:20 GMT"}, 20.0),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
        ({"retry-after-ms": "often", "retry-after": "1"}, 1.0),
        ({"retry-after": "soon", "ratelimit-reset": "4"}, 4.0),
        ({"retry-after": "2", "ratelimit-reset": "60"}, 2.0),
        ({"ratelimit-reset": "12"}, 12.0),
        ({"ratelimit-reset": "12", "ratelimit-remaining": "0"}, 12.0),
        ({"ratelimit-reset": "12", "ratelimit-remaining": "3"}, None),
        ({"x-ratelimit-reset-requests": "1m30s", "x-ratelimit-remaining-requests": "0"}, 90.0),
        ({"x-ratelimit-reset-requests": "1d2h0m3.5s"}, 93_603.5),
        ({"x-ratelimit-reset-requests": "9d"}, LONGEST_WAIT),
        ({"x-ratelimit-reset-requests": "2h0m3.5s"}, 7203.5),
        ({"x-ratelimit-reset-tokens": "6ms", "x-ratelimit-remaining-tokens": "0"}, 0.006),
        ({"x-ratelimit-reset-tokens": "6m", "x-ratelimit-remaining-tokens": "9"}, None),
        ({"x-ratelimit-reset-tokens": "2s", "x-ratelimit-reset-requests": "5s"}, 5.0),
        ({"x-ratelimit-reset": "1800000005000"}, 5.0),
        ({"anthropic-ratelimit-requests-reset": "2027-01-15T08:00:20Z"}, 20.0),
        (
            {
                "anthropic-ratelimit-input-tokens-reset": "2027-01-15T08:00:10.123456789+00:00",
                "anthropic-ratelimit-input-tokens-remaining": "0",
                "anthropic-ratelimit-requests-reset": "2027-01-15T08:00:50Z",
                "anthropic-ratelimit-requests-remaining": "49",
            },
            10.123456,
        ),
        ({"anthropic-ratelimit-tokens-reset": "2027-01-15T07:00:00Z"}, 0.0),
        (_SUBSCRIPTION, 3_600.0),
        (
            {
                "x-codex-primary-used-percent": "100.0",
                "x-codex-primary-reset-after-seconds": "5400",
                "x-codex-secondary-used-percent": "41.5",
                "x-codex-secondary-reset-after-seconds": "400000",
            },
            5_400.0,
        ),
        ({}, None),
    ],
)
def test_the_wait_is_read_in_every_form(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, now=NOW) == (seconds if seconds is None else pytest.approx(seconds))


@settings(max_examples=300)
@given(
    st.dictionaries(
        st.sampled_from(["retry-after", "retry-after-ms", *_NAMES]),
        st.sampled_from(_WORDS) | st.text(max_size=80) | st.from_regex(r"[0-9.]{1,30}(ms|m|s|h|d|us)?", fullmatch=True),
        max_size=5,
    ),
    st.floats(0, 4e9),
)
def test_no_header_breaks_the_reading_nor_gives_a_wait_out_of_bounds(headers: dict[str, str], now: float) -> None:
    wait = retry_after(headers, now=now)
    assert wait is None or 0 <= wait <= LONGEST_WAIT


@settings(max_examples=200)
@given(
    st.floats(0, LONGEST_WAIT - 1).map(lambda value: round(value, 3)),
    st.sampled_from(["retry-after", "ratelimit-reset", "x-ratelimit-reset-tokens", "anthropic-ratelimit-tokens-reset"]),
)
def test_one_wait_is_the_same_in_every_form(wait: float, name: str) -> None:
    minutes, rest = divmod(wait, 60)
    forms = (f"{wait:.3f}", f"{wait:.3f}s", f"{wait * 1000:.0f}ms", f"{minutes:.0f}m{rest:.3f}s", f"{NOW + wait:.3f}")
    for form in forms:
        assert retry_after({name: form}, now=NOW) == pytest.approx(wait, abs=0.002)


@pytest.mark.parametrize(
    ("delay", "wait"),
    [
        ("34.5s", 34.5),
        ("0s", 0.0),
        ("9999999s", LONGEST_WAIT),
        ({"seconds": 7, "nanos": 5}, 7.0),
        ({"seconds": "7"}, 7.0),
        ({"seconds": -7}, None),
        (None, None),
        ([], None),
    ],
)
def test_the_wait_of_a_body_is_used_where_no_header_gives_one(delay: object, wait: float | None) -> None:
    details = [{"@type": "type.googleapis.com/google.rpc.Help"}, {"retryDelay": delay}]
    body = msgspec.json.encode({"error": {"message": "Slow", "details": details, "status": "RESOURCE_EXHAUSTED"}})
    assert from_response(PLACE, 429, {}, body, now=NOW).retry_after == wait
    assert from_response(PLACE, 429, {"retry-after": "2"}, body, now=NOW).retry_after == 2.0


@pytest.mark.parametrize(
    ("body", "wait"),
    [
        ({"error": {"type": "usage_limit_reached", "message": "Limit.", "resets_in_seconds": 18_000}}, 18_000.0),
        ({"error": {"type": "usage_limit_reached", "message": "Limit.", "resets_at": NOW + 600}}, 600.0),
        ({"error": {"message": "Slow", "retry_after": 4}}, 4.0),
        ({"detail": "Slow", "retry_after_seconds": "9"}, 9.0),
        (
            {"error": {"code": 429, "message": "x", "metadata": {"headers": {"X-RateLimit-Reset": "1800000007000"}}}},
            7.0,
        ),
        ({"error": {"message": "Rate limit reached for m. Please try again in 1m2.5s. Visit https://x.y"}}, 62.5),
        ({"error": {"message": "Quota exceeded. Please retry in 36.1s."}}, 36.1),
        ({"error": {"message": "Please try again in a moment", "retry_after": True}}, None),
    ],
)
def test_a_body_says_when_a_limit_resets_in_many_words(body: object, wait: float | None) -> None:
    error = from_response(PLACE, 429, {}, msgspec.json.encode(body), now=NOW)
    assert error.retry_after == (wait if wait is None else pytest.approx(wait))


@pytest.mark.parametrize(
    ("headers", "limits"),
    [
        ({}, None),
        ({"retry-after": "5"}, None),
        ({"x-ratelimit-reset-requests": "9s"}, None),  # of what is left nothing is said
        ({"x-ratelimit-reset-requests": "9s", "x-ratelimit-remaining-requests": "1"}, {}),
        (
            {
                "x-ratelimit-reset-requests": "9s",
                "x-ratelimit-remaining-requests": "4",
                "x-ratelimit-reset-tokens": "20s",
                "x-ratelimit-remaining-tokens": "0",
            },
            {"tokens": 20.0},
        ),
        (
            {
                "anthropic-ratelimit-input-tokens-remaining": "0",
                "anthropic-ratelimit-input-tokens-reset": "2027-01-15T08:00:30Z",
            },
            {"input tokens": 30.0},
        ),
        ({"ratelimit-remaining": "0", "ratelimit-reset": "12"}, {"requests": 12.0}),
        (_SUBSCRIPTION, {"unified": 3_600.0, "unified 5h": 3_600.0}),
    ],
)
def test_an_answer_says_which_limits_are_used_up(headers: dict[str, str], limits: dict[str, float] | None) -> None:
    assert used_up(headers, now=NOW) == limits

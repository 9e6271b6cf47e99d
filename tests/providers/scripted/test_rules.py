"""Each rule of the scripted servers refuses what breaks it, and names where that is known from."""

import json
import random
import re
from copy import deepcopy
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
from tests.providers.odd_histories import BOOKS, Place
from tests.providers.scripted.mutants import MEDIA, MUTANTS, conversation

from treadle.providers.provider_rows import Wire
from treadle.providers.scripted.request_rules import RequestRule
from treadle.providers.scripted.script import SayText, SayThinking, Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer

USUAL = {
    Wire.ANTHROPIC_MESSAGES: Place("anthropic", "claude-sonnet-4-5"),
    Wire.OPENAI_CHAT: Place("openai-chat", "gpt-5"),
    Wire.OPENAI_RESPONSES: Place("openai", "gpt-5"),
    Wire.GEMINI: Place("gemini", "gemini-2.5-pro"),
    Wire.BEDROCK_CONVERSE: Place("bedrock", "us.anthropic.claude-sonnet-4-5-20250929-v1:0"),
}
MODELS = {
    ("no sampling parameter", Wire.ANTHROPIC_MESSAGES): "claude-opus-4-7",
    ("adaptive thinking only", Wire.ANTHROPIC_MESSAGES): "claude-opus-4-7",
    ("levels of effort", Wire.ANTHROPIC_MESSAGES): "claude-opus-4-6",
    ("the user last", Wire.ANTHROPIC_MESSAGES): "claude-opus-4-6",
    ("no effort without reasoning", Wire.OPENAI_CHAT): "gpt-4.1",
    ("no effort with tools", Wire.OPENAI_CHAT): "gpt-5.5",
    ("no effort without reasoning", Wire.OPENAI_RESPONSES): "gpt-4.1",
    ("signatures of calls", Wire.GEMINI): "gemini-3-pro-preview",
    ("no cache points", Wire.BEDROCK_CONVERSE): "meta.llama4-maverick-17b-instruct-v1:0",
    ("results alone", Wire.BEDROCK_CONVERSE): "meta.llama4-maverick-17b-instruct-v1:0",
    ("status of results", Wire.BEDROCK_CONVERSE): "mistral.mistral-large-2407-v1:0",
}
"""Where a rule is one of certain models."""

RULES = [(wire, rule) for wire, book in BOOKS.items() for rule in book.rows()]
DATED = re.compile(r"20\d\d-[01]\d\b")


def request_for(rule: RequestRule, wire: Wire, seed: int) -> dict[str, Any]:
    """A request that the API takes, for a model that the rule is about."""
    usual = USUAL[wire]
    place = Place(usual.provider, MODELS.get((rule.what, wire), usual.model))
    asked = conversation(wire, place.provider, place.model, random.Random(seed))
    return {"model": place.model, "stream": True, **json.loads(place.api().prepare(asked).body)}


def names(rule: RequestRule, wire: Wire, body: dict[str, Any]) -> set[str]:
    vendor = "" if rule.usual else rule.vendors[0]
    return {one.rule.what for one in BOOKS[wire].broken(body, vendor)}


@pytest.mark.parametrize(("wire", "rule"), RULES, ids=[f"{wire.value}: {rule.what}" for wire, rule in RULES])
def test_a_request_that_breaks_a_rule_is_refused_by_that_rule(wire: Wire, rule: RequestRule) -> None:
    for seed in range(1 if rule.what in MEDIA else 3):
        body = request_for(rule, wire, seed)
        assert rule.what not in names(rule, wire, body)
        broken = deepcopy(body)
        MUTANTS[wire][rule.what](broken)
        assert rule.what in names(rule, wire, broken), json.dumps(broken)[:3_000]


@pytest.mark.parametrize("wire", BOOKS)
def test_what_the_mutants_are_made_of_breaks_no_rule(wire: Wire) -> None:
    rule = BOOKS[wire].rules[0]
    assert [BOOKS[wire].broken(request_for(rule, wire, seed)) for seed in range(9)] == [[]] * 9


@pytest.mark.parametrize("wire", BOOKS)
def test_a_rule_has_a_name_of_its_own_and_a_dated_source(wire: Wire) -> None:
    rules = BOOKS[wire].rows()
    assert len({rule.what for rule in rules}) == len(rules)
    assert [rule.what for rule in rules if not DATED.search(rule.source)] == ["a stream"]


async def test_a_server_answers_with_the_status_and_the_code_of_the_rule() -> None:
    script = Script(turns=(Turn(items=(SayText(text="Hi"),)),))
    call = {"id": "c" * 41, "type": "function", "function": {"name": "x", "arguments": "{}"}}
    asked = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c" * 41, "content": "ok"},
    ]
    claude = {"model": "claude-a:1m", "max_tokens": 9, "stream": True, "messages": asked[:1]}
    async with ScriptedServer(script, vendor="openai") as server, httpx2.AsyncClient() as client:
        url, headers = server.base_url, {"anthropic-version": "2023-06-01"}
        long = await client.post(f"{url}/v1/chat/completions", json={"model": "m", "stream": True, "messages": asked})
        unknown = await client.post(f"{url}/v1/messages", json=claude, headers=headers)
    assert (long.status_code, long.json()["error"]["code"]) == (400, "string_above_max_length")
    assert (unknown.status_code, unknown.json()["error"]["type"]) == (404, "not_found_error")


@pytest.mark.parametrize("wire", [Wire.ANTHROPIC_MESSAGES, Wire.BEDROCK_CONVERSE])
async def test_thinking_that_a_server_signed_has_to_come_back_as_it_was(wire: Wire) -> None:
    place = USUAL[wire]
    asked = conversation(wire, place.provider, place.model, random.Random(0))
    signs = Turn(items=(SayThinking(text="Hm.", signature="c2ln"), SayText(text="Hi")))
    call = place.api().prepare(asked)
    changed = call.body.replace(b'"Hm."', b'"Hmm"')
    async with ScriptedServer(Script(turns=(signs, signs), otherwise=signs)) as server, httpx2.AsyncClient() as client:
        url = server.base_url + urlsplit(call.url).path
        answers = [await client.post(url, content=body, headers=call.headers) for body in (changed, changed, call.body)]
    assert [answer.status_code for answer in answers] == [200, 400, 200]
    assert "Invalid `signature` in `thinking` block" in answers[1].text

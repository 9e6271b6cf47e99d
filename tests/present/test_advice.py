"""What a person can do about a failed model call: in a terminal with commands, beside buttons without."""

import re

import pytest
from msgspec import structs

from treadle.present.failure_words import advice, needs_key
from treadle.protocol.models import ErrorKind, ModelError
from treadle.providers.endpoint import Endpoint
from treadle.providers.failures import from_response

FIXES = (
    "",
    "Store another key: `treadle login anthropic`.",
    "Store another key: `treadle login anthropic`. ANTHROPIC_API_KEY overrides a stored key. Change or unset it.",
    "Choose another model with --model, ask the provider for access, or store another key: `treadle login x`.",
)


@pytest.mark.parametrize("kind", ErrorKind)
@pytest.mark.parametrize("fix", FIXES)
def test_no_command_is_named_beside_buttons(kind: ErrorKind, fix: str) -> None:
    said = advice(ModelError(kind=kind, message="m", fix=fix, retry_after=9_000.0), "anthropic/m", buttons=True)
    assert not re.search(r"`|--|/model|treadle ", said), said
    assert said.endswith(".")
    assert not fix or advice(ModelError(kind=kind, message="m", fix=fix), "anthropic/m") == fix


@pytest.mark.parametrize("status", [401, 403])
def test_beside_the_buttons_stands_whose_key_was_refused_and_no_more_of_it_than_its_end(status: int) -> None:
    place = Endpoint(
        name="acme",
        base_url="https://api.example.org/v1",
        api_key="sk-secret-0000-1234",
        key_origin="~/.acme/key.txt",
        key_variable="ACME_KEY",
    )
    refused = from_response(place, status, {}, b'{"error":{"message":"The key comes from afar. No."}}', now=0.0)
    asks = " Choose another model, or ask the provider for access." if status == 403 else ""
    said = advice(refused, "acme/m", buttons=True)
    assert said == (
        "The key comes from ~/.acme/key.txt and ends in …1234. "
        f"ACME_KEY overrides a stored key. Change or unset it.{asks}"
    )
    assert needs_key(refused)
    stored = structs.replace(place, key_origin="", key_variable="")
    unnamed = from_response(stored, status, {}, b"", now=0.0)
    assert needs_key(unnamed) is (status == 401)
    assert "comes from" not in advice(unnamed, "acme/m", buttons=True)

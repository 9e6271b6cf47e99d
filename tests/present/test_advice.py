"""What a person can do about a failed model call: in a terminal with commands, beside buttons without."""

import re

import pytest

from treadle.present.failure_words import advice
from treadle.protocol.models import ErrorKind, ModelError

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


def test_a_key_of_the_environment_is_named_beside_the_buttons() -> None:
    refused = ModelError(kind=ErrorKind.AUTHENTICATION, message="401", status=401, fix=FIXES[2])
    assert advice(refused, "anthropic/m", buttons=True) == (
        "Enter another key, or choose another model. ANTHROPIC_API_KEY overrides a stored key. Change or unset it."
    )

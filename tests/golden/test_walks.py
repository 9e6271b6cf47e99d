"""Random sessions of 0.1.0, with its own reading of each: what they show and send is the same for ever."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tests.golden.compare_with_0_1_0 import told

WALKS = Path(__file__).with_name("logs") / "walks_0_1_0.jsonl.gz"
"""Written by `walk_0_1_0.py`."""


def walks() -> list[Any]:
    """Read the walks."""
    return [json.loads(line) for line in gzip.decompress(WALKS.read_bytes()).splitlines()]


@pytest.mark.parametrize("walked", walks(), ids=lambda walked: f"walk-{walked['seed']}")
def test_a_random_old_session_shows_and_sends_what_it_did(walked: dict[str, Any]) -> None:
    assert list(told(walked)) == []

"""Random sessions of 0.1.0: what they send is the same for ever as it read them itself, and what is shown is, too."""

import gzip
import json
from typing import Any

import pytest

from tests.golden.compare_with_0_1_0 import told
from tests.golden.logs import WALKS, Row, read_rows
from tests.golden.reading import shown


def walks() -> list[Any]:
    """Read the walks."""
    return [json.loads(line) for line in gzip.decompress(WALKS.read_bytes()).splitlines()]


@pytest.mark.parametrize("walked", walks(), ids=lambda walked: f"walk-{walked['seed']}")
def test_a_random_old_session_shows_and_sends_what_it_did(walked: dict[str, Any]) -> None:
    assert list(told(walked)) == []
    assert shown(list(read_rows([Row(*row) for row in walked["rows"]]))) == walked["shown"]

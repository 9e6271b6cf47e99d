"""A sample of interrupts at random moments of real sessions: what they report is what the provider bills."""

import asyncio
from pathlib import Path

import pytest

from tests.rehearsal.bills import billed_sessions
from tests.rehearsal.sessions import KEY

SEED = 1


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv(KEY, "key")


def test_the_cost_of_a_session_that_is_interrupted_is_what_the_provider_bills(tmp_path: Path) -> None:
    found = asyncio.run(billed_sessions(SEED, 6, tmp_path))

    assert [one.trouble for one in found if one.trouble] == []
    assert sum(one.cut for one in found) > 2

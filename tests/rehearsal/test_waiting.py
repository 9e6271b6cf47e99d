"""What is typed while a session works, with stops and kills at random moments: a small part of what the soak does."""

from pathlib import Path

import pytest

from tests.rehearsal.waiting import rehearse_waiting


@pytest.mark.parametrize("seed", [3, pytest.param(4, marks=pytest.mark.soak)])
async def test_each_message_is_read_once_removed_or_still_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    found = await rehearse_waiting(seed, tmp_path, acts=16)
    assert found.troubles == []
    assert found.messages
    assert found.stops + found.kills

"""Several surfaces on one session, each cut off and brought back at random: a small part of what the soak does."""

from pathlib import Path

import pytest

from tests.rehearsal.surfaces import rehearse_surfaces


async def test_nothing_is_lost_or_doubled_and_each_question_has_one_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    found = await rehearse_surfaces(7, tmp_path, steps=4)
    assert found.troubles == []
    assert found.cuts + found.kills > 0

"""A few histories with kills in them; `make soak ARGS=histories` lives two hundred kills."""

from pathlib import Path

from tests.rehearsal.histories import kill_histories


async def test_a_history_that_is_killed_again_and_again_stays_whole_and_loses_nothing(tmp_path: Path) -> None:
    found = await kill_histories(11, histories=1, kills=2, folder=tmp_path)
    assert [trouble for one in found for trouble in one.troubles] == []
    assert sum(one.kills for one in found) == 2

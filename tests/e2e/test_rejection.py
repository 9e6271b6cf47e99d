"""A call that a person rejects leaves the rest of its reply unrun, and the model reads so for each call."""

from pathlib import Path

import pytest

from tests.e2e.faults.driving import attended, make, run
from treadle.engine.core.texts import SKIPPED, rejected
from treadle.protocol.models import ToolProtocol
from treadle.protocol.notifications import CallChanged, CallStatus, TurnStop
from treadle.protocol.permissions import OptionKind
from treadle.protocol.tools import Outcome

STEP = (
    make("write_to_file", path="first.txt", content="1\n"),
    run("touch rejected"),
    make("write_to_file", path="third.txt", content="3\n"),
    make("list_files", path="."),
    make("attempt_completion", result="All of it is done."),
)


@pytest.mark.parametrize("protocol", list(ToolProtocol))
async def test_what_stands_behind_a_rejected_call_is_not_run_and_each_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: ToolProtocol
) -> None:
    finished: dict[str, Outcome] = {}
    async with attended(tmp_path, monkeypatch, STEP, protocol=protocol) as session:
        changes = session.live.follow()
        await session.begin()
        await session.answer(await session.asked(), OptionKind.ALLOW_ONCE)
        await session.answer(await session.asked(), OptionKind.REJECT_ONCE)
        outcome = await session.ended()
        async for item in changes:
            if isinstance(item, CallChanged) and item.status is CallStatus.FINISHED and item.result is not None:
                finished.setdefault(item.call.id.removeprefix("call_1_1_"), item.result.outcome)
            if len(finished) > len(STEP):
                break
        sent = str(session.server.requests[-1].body["messages"][-1])
    assert (outcome.stop, outcome.completed, outcome.text) == (TurnStop.END_TURN, True, "Done.")
    first_five = [finished[str(number)] for number in range(1, 6)]
    assert first_five == [Outcome.OK, Outcome.REJECTED, Outcome.SKIPPED, Outcome.SKIPPED, Outcome.SKIPPED]
    assert (sent.count(SKIPPED), sent.count(rejected(""))) == (3, 1)
    assert sorted(path.name for path in (tmp_path / "ws").iterdir()) == ["first.txt"]

"""The copy of a session's last command: what changed in it waits for one answer, and goes with the next command."""

from pathlib import Path

import pytest

from tests.workspace.copies.copied import Bench
from tests.workspace.sandbox.running import bubblewrap
from treadle.app.security.trial_copies import Copies
from treadle.protocol.errors import ToolError
from treadle.protocol.tools import CopyChanges, Outcome
from treadle.workspace.copies import Copy, nothing_is_held

GONE = "Nothing was applied: the changes are not there any more. Make the call again."


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    folder = tmp_path.resolve()
    (folder / "work").mkdir()
    bench = Bench(folder)
    bench.needs_copies()
    return bench


def made(copies: Copies, bench: Bench) -> Copy:
    return copies.make(bench.profile(), bubblewrap(), bench.data)


async def tried(copies: Copies, bench: Bench, line: str) -> CopyChanges:
    """Run a line on a new copy; gives what it changed."""
    command = bench.start(line, made(copies, bench))
    await command.finish(100)
    output = command.take_output()
    await command.close()
    return copies.read(nothing_is_held, output, failed=command.status != 0)


async def test_what_waits_is_applied_once_and_then_there_is_no_copy(bench: Bench) -> None:
    copies = Copies()
    changes = await tried(copies, bench, "echo new > file")
    copy = copies.last
    assert copy is not None
    with pytest.raises(ToolError) as refused:
        copies.keep("another digest")
    assert (str(refused.value), copies.last, [*bench.root.iterdir()]) == (GONE, copy, [])
    done = copies.keep(changes.digest)
    assert (done.outcome, [change.path for change in done.changes]) == (Outcome.OK, [str(bench.root / "file")])
    assert (bench.root / "file").read_text() == "new\n"
    assert (copies, copy.folder.exists()) == (Copies(), False)
    with pytest.raises(ToolError) as refused:
        copies.keep(changes.digest)
    assert str(refused.value) == GONE


async def test_a_copy_in_which_nothing_changed_is_thrown_away_at_once(bench: Bench) -> None:
    copies = Copies()
    changes = await tried(copies, bench, "true")
    assert (changes.changes, changes.outputs, copies) == ((), (), Copies())
    assert copies.read(nothing_is_held, "", failed=False) == CopyChanges()


async def test_the_next_command_throws_the_last_copy_away_with_what_waits(bench: Bench) -> None:
    copies = Copies()
    changes = await tried(copies, bench, "echo new > file")
    before = copies.last
    after = made(copies, bench)
    assert before is not None
    assert (before.folder.exists(), after.folder.exists(), copies) == (False, True, Copies(last=after))
    with pytest.raises(ToolError) as refused:
        copies.keep(changes.digest)
    assert (str(refused.value), [*bench.root.iterdir()]) == (GONE, [])
    copies.throw_away()
    assert (after.folder.exists(), copies) == (False, Copies())

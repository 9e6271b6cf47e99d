"""Programs that Treadle uses itself."""

import resource
import sys

import pytest

from treadle.workspace.programs import program, stream

_TAKE = "import sys; sys.stdin.read(1); print(len(bytearray(400_000_000)))"


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="the system has no such limit")
async def test_a_program_gets_no_more_memory_than_it_may_take() -> None:
    for memory, said in ((0, b"400000000\n"), (200_000_000, b"")):
        async with program(sys.executable, "-c", _TAKE, memory=memory) as process:
            answer, _ = await process.communicate(b"x")
            assert (answer, stream(process.stdout).at_eof()) == (said, True)

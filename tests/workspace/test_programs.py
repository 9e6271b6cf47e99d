"""Programs that Treadle uses itself."""

import asyncio
import logging
import resource
import sys

import pytest

from treadle.workspace.commands.installed_programs import program, stream

_TAKE = "import sys; sys.stdin.read(1); print(len(bytearray(400_000_000)))"


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="the system has no such limit")
async def test_a_program_gets_no_more_memory_than_it_may_take() -> None:
    for memory, said in ((0, b"400000000\n"), (200_000_000, b"")):
        async with program(sys.executable, "-c", _TAKE, memory=memory) as process:
            answer, _ = await process.communicate(b"x")
            assert (answer, stream(process.stdout).at_eof()) == (said, True)


async def test_a_program_that_is_cancelled_while_it_starts_or_ends_is_no_stranger_to_asyncio(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def use() -> None:
        async with program("/bin/sh", "-c", ":") as process:
            await process.wait()

    with caplog.at_level(logging.WARNING, "asyncio"):
        for number in range(600):
            using = asyncio.create_task(use())
            for _ in range(number % 12):
                await asyncio.sleep(0)
            if number % 3 == 0:
                await asyncio.sleep(0.0005 * (number % 7))
            using.cancel()
            await asyncio.gather(using, return_exceptions=True)
    assert caplog.messages == []

"""Runs a line on a copy, and waits to be killed: `killed_owner.py FOLDER LINE`."""

import asyncio
import sys
from pathlib import Path

from tests.workspace.copies.copied import Bench
from tests.workspace.sandbox.running import bubblewrap

from treadle.workspace.copies import make_copy


async def main() -> None:
    bench = Bench(Path(sys.argv[1]))
    command = bench.start(sys.argv[2], make_copy(bench.profile(), bubblewrap(), bench.data))
    command.show(lambda text: print(text, end="", flush=True))
    await command.ended(1000)
    print("ended", flush=True)
    await asyncio.sleep(1000)


if __name__ == "__main__":
    asyncio.run(main())

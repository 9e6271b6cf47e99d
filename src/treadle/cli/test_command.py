"""Test instructions: run the prompts of FILE on copies of a fixture, and hold the log against what FILE expects.

The replies of the model are recorded with the first run, and free from then on.
"""

import argparse
import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from treadle.door.history import CheckedInstruction
    from treadle.door.trust import SessionTrust


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("file", type=Path, metavar="FILE", help="the tests, in TOML (docs/instruction_tests.md)")
    parser.add_argument("--live", action="store_true", help="call the model, and record its replies again")
    parser.add_argument("--only", metavar="NAME", default="", help="run only the test of this name")
    parser.add_argument("--json", action="store_true", help='print {"tests": [...], "passed", "failed"}')
    parser.add_argument("--directory", "-C", type=Path, default=Path(), metavar="DIR", help="the folder of the project")
    parser.add_argument("--trust", action="store_true", help="trust the folder for this run only")


def execute(arguments: argparse.Namespace) -> int:
    """Run the tests; the exit code is 1 where one fails."""
    from treadle.door.opening import check_workspace
    from treadle.door.program import Exit
    from treadle.door.trust import session_trust, trusted_by_variable
    from treadle.protocol.codec import encode

    folder = check_workspace(arguments.directory)
    trust = session_trust(folder, once=arguments.trust or trusted_by_variable())
    found = asyncio.run(_run(arguments, trust))
    failed = sum(not one.passed for one in found)
    if arguments.json:
        tests = ",".join(encode(one).decode() for one in found)
        sys.stdout.write(f'{{"tests":[{tests}],"passed":{len(found) - failed},"failed":{failed}}}\n')
    else:
        sys.stdout.write(f"{len(found) - failed} passed, {failed} failed.\n")
    return Exit.FAILED if failed else Exit.DONE


async def _run(arguments: argparse.Namespace, trust: "SessionTrust") -> "list[CheckedInstruction]":
    """Run the tests, and say what came of each when it has ended."""
    from treadle.door.history import lines_of_tested, run_instruction_tests
    from treadle.door.program import harmless, write_wrapped

    found = []
    file = trust.workspace / arguments.file.expanduser()
    async for one in run_instruction_tests(file, trust, live=arguments.live, only=arguments.only):
        found.append(one)
        if not arguments.json:
            write_wrapped(sys.stdout, harmless("\n".join(lines_of_tested(one))))
            sys.stdout.flush()
    return found

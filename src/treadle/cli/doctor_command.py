"""Check that Treadle has everything it needs, and call each configured provider once."""

import argparse
import asyncio
import sys


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("--offline", action="store_true", help="call no provider")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")


def execute(arguments: argparse.Namespace) -> int:
    """Print each check as it is done; 1 if one failed."""
    return asyncio.run(_examine(offline=arguments.offline, as_json=arguments.json))


async def _examine(*, offline: bool, as_json: bool) -> int:
    from treadle.door.reports import CheckStatus, examine
    from treadle.present.words import counted
    from treadle.protocol.codec import encode

    counts = dict.fromkeys(CheckStatus, 0)
    async for check in examine(offline=offline):
        counts[check.status] += 1
        if as_json:
            text = encode(check).decode()
        else:
            fix = f"\n      fix: {check.fix}" if check.fix else ""
            text = f"{check.status:<4}  {check.name}: {check.found}{fix}"
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()
    warned, failed = counts[CheckStatus.WARN], counts[CheckStatus.FAIL]
    if not as_json:
        found = [counted(number, noun) for number, noun in ((failed, "failure"), (warned, "warning")) if number]
        sys.stdout.write(f"{' and '.join(found)}.\n" if found else "Everything is OK.\n")
    return 1 if failed else 0

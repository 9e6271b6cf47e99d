"""Print what shell lines of the tests get, with and without a sandbox: what is too mild, and what runs without asking.

`python -m bench.shape [--save FILE] [--against FILE]`: the latter lists the lines whose answer is another one.
"""

import argparse
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.policy.views import context

from treadle.policy.policy_rows import answer_row
from treadle.protocol.permissions import Verdict
from treadle.protocol.tools import Confinement

_LINES = Path(__file__).resolve().parents[1] / "tests" / "policy" / "lines"
_LABELS = {
    "read_only": "read_only", "reads_not_proven": "read_only", "agents_read": "read_only",
    "everyday": "read_only", "dangerous": "dangerous",
    "needs_confirmation": "needs_confirmation", "agents_not_proven": "needs_confirmation",
    "neighbours_that_ask": "needs_confirmation", "pipes_that_ask": "needs_confirmation",
    "attacks_that_ask": "needs_confirmation",
}  # fmt: skip
Answers = dict[str, dict[str, str]]


def _rows() -> Iterator[tuple[str, str, str]]:
    """Give group, the mildest label that is right, and line."""
    for path in sorted(_LINES.rglob("*.txt")):
        label = "dangerous" if path.parent.name == "attacks" else _LABELS.get(path.stem)
        lines = [] if label is None else path.read_text().splitlines()
        yield from ((path.stem, label or "", line.replace("⏎", "\n")) for line in lines if not line.startswith("## "))
    cases = Path(os.environ.get("TREADLE_CASES", ".")) / "commands.jsonl"
    order = list(dict.fromkeys(["read_only", *_LABELS.values()]))
    for case in map(json.loads, cases.read_text().splitlines()) if cases.exists() else ():
        labels = [case["expected"], *case.get("acceptable", [])]
        mildest = min(labels, key=("read_only", "needs_confirmation", "dangerous").index)
        yield "labelled " + (case["expected"] if mildest in order else mildest), mildest, case["command"]


def _is_lenient(label: str, answer: dict[str, str], *, confines: bool) -> bool:
    if label == "read_only" or answer["verdict"] != Verdict.ALLOW:
        return False
    return label == "dangerous" or not (confines and answer["confinement"] == Confinement.LOOK)


def main() -> int:
    """Print one line for each group and backend; fails where a line is too mild."""
    parser = argparse.ArgumentParser(prog="python -m bench.shape")
    parser.add_argument("--save", type=Path)
    parser.add_argument("--against", type=Path)
    given = parser.parse_args()
    answers: Answers = {}
    failures = 0
    for confines in (False, True):
        groups: dict[str, list[tuple[str, bool, bool]]] = {}
        surroundings = context(confines=confines, hidden=("/home/user",))
        for group, label, line in _rows():
            row = answer_row({"command": line}, surroundings)
            answer = {key: str(row[key]) for key in ("class", "verdict", "confinement")}
            answers[f"{'auto' if confines else 'none'} {group}: {line}"] = answer
            found = (line, answer["verdict"] == Verdict.ALLOW, _is_lenient(label, answer, confines=confines))
            groups.setdefault(group, []).append(found)
        print(f"\nbackend {'auto' if confines else 'none'}")
        for group, lines in groups.items():
            runs, lenient = sum(one[1] for one in lines), [one[0] for one in lines if one[2]]
            failures += len(lenient)
            print(f"  {group:32} {len(lines):5} lines, {runs / len(lines):6.1%} run, {len(lenient)} too mild")
            for line in lenient[:20]:
                print(f"    too mild: {line!r}")
    if given.save:
        given.save.write_text(json.dumps(answers))
    if given.against:
        before: Answers = json.loads(given.against.read_text())
        for line, answer in answers.items():
            if line in before and before[line] != answer:
                print(f"{line!r}: {before[line]} -> {answer}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

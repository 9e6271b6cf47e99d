"""The labelled sample of shell lines and paths: nothing too lenient, and most reading lines run without asking."""

from pathlib import Path
from typing import Any

import pytest

from tests.policy.views import ROOT, RealView, Record, context, labelled
from treadle.policy.classify import classify_command
from treadle.policy.decision_context import PolicyContext
from treadle.policy.findings import CommandClass, PathOp
from treadle.policy.path_check import check_path
from treadle.protocol.permissions import Mode

_CLASSES = ("read_only", "needs_confirmation", "dangerous")
_PLACES = ("inside", "outside", "protected")


def _mildest(order: tuple[str, ...], expected: str, acceptable: list[str]) -> int:
    return min(order.index(label) for label in (expected, *acceptable))


def test_no_shell_line_is_judged_too_leniently(record_property: Record) -> None:
    lenient, judged, stricter = [], 0, 0
    for case in labelled("commands.jsonl"):
        for trusted in (True, False):
            expected = case["expected"] if trusted else case.get("untrusted_expected", case["expected"])
            found = classify_command(case["command"], ROOT, context(trusted=trusted)).command_class
            if _CLASSES.index(found) < _mildest(_CLASSES, expected, case.get("acceptable", [])):
                lenient.append((case["id"], trusted, found.value))
            judged += 1
            stricter += found.value not in (expected, *case.get("acceptable", []))
    told = f"{judged} judgements, {len(lenient)} wrongly lenient, {stricter - len(lenient)} stricter than labelled"
    record_property("figure", f"corpus, shell lines: {told}")
    assert lenient == []


def test_most_reading_lines_run_without_asking(record_property: Record) -> None:
    reading = [case for case in labelled("commands.jsonl") if case["expected"] == "read_only"]
    classes = [classify_command(case["command"], ROOT, context()).command_class for case in reading]
    unasked = classes.count(CommandClass.READ_ONLY)
    told = (
        f"{unasked} of {len(reading)} run without asking ({unasked / len(reading):.1%}), {len(reading) - unasked} ask"
    )
    record_property("figure", f"corpus, reading lines: {told}")
    assert unasked / len(reading) >= 0.7


def test_no_path_is_judged_too_leniently(tmp_path: Path, record_property: Record) -> None:
    lenient, stricter = [], 0
    cases = labelled("paths.jsonl")
    for case in cases:
        root = tmp_path / case["id"]
        found = _check(case, root)
        if _PLACES.index(found) < _mildest(_PLACES, case["expected"], case.get("acceptable", [])):
            lenient.append((case["id"], found))
        stricter += found not in (case["expected"], *case.get("acceptable", []))
    told = f"{len(cases)} judgements, {len(lenient)} wrongly lenient, {stricter - len(lenient)} stricter than labelled"
    record_property("figure", f"corpus, paths: {told}")
    assert lenient == []


def _check(case: dict[str, Any], root: Path) -> str:
    def real(text: str) -> str:
        return text.replace("$R", str(root))

    _build(case["setup"], root)
    surroundings = PolicyContext(
        mode=Mode.ASK, roots=(real(case["workspace"]),), files=RealView(), home=str(root / "home")
    )
    return check_path(real(case["requested_path"]), PathOp(case["op"]), real(case["cwd"]), surroundings).where.value


def _build(setup: dict[str, Any], root: Path) -> None:
    root.mkdir(parents=True)
    for name in setup["dirs"]:
        (root / name).mkdir(parents=True, exist_ok=True)
    for name in setup["files"]:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    for link in setup["symlinks"]:
        (root / link["path"]).parent.mkdir(parents=True, exist_ok=True)
        (root / link["path"]).symlink_to(link["target"].replace("$R", str(root)))
    for link in setup["hardlinks"]:
        try:
            (root / link["path"]).hardlink_to(root / link["target"])
        except OSError:
            pytest.skip("this file system has no hard links")

"""Lines as coding agents send them: most of what only reads runs unasked, and nothing that is not proven to."""

from pathlib import Path

import pytest

from tests.policy.views import HOME, ROOT, Record, context
from treadle.policy.classify import classify_command
from treadle.policy.decide import decide
from treadle.policy.findings import CommandClass
from treadle.protocol.permissions import Mode, Verdict
from treadle.protocol.tools import Confinement, Risk, RunCommand, ToolSpec, ToolTraits

_LINES = Path(__file__).parent / "lines"
_SHELL = ToolSpec(name="execute_command", description="", parameters={}, traits=ToolTraits(), risk=Risk.EXECUTE)


def _lines(name: str) -> list[str]:
    lines = (_LINES / name).read_text().splitlines()
    return [line.replace("⏎", "\n") for line in lines if not line.startswith("## ")]


def _class(line: str) -> CommandClass:
    return classify_command(line, ROOT, context()).command_class


@pytest.mark.parametrize(("confines", "least"), [(True, 0.95), (False, 0.65)])
def test_most_lines_that_only_read_run_without_asking(record_property: Record, *, confines: bool, least: float) -> None:
    lines = [*_lines("agents_read.txt"), *_lines("read_only.txt"), *_lines("reads_not_proven.txt")]
    surroundings = context(confines=confines, hidden=(HOME,))
    decisions = [decide(_SHELL, {}, (RunCommand(command=line, cwd=ROOT),), surroundings) for line in lines]
    allowed = [decision for decision in decisions if decision.verdict is Verdict.ALLOW]
    told = f"{len(allowed)} of {len(lines)} run without asking ({len(allowed) / len(lines):.1%})"
    record_property("figure", f"own corpus, reading lines, {'with' if confines else 'without'} a sandbox: {told}")
    assert len(allowed) / len(lines) >= least
    assert {decision.confinement for decision in allowed} == {Confinement.LOOK if confines else Confinement.OPEN}


def test_lines_that_are_not_proven_to_read_are_never_dangerous() -> None:
    assert [
        line for line in _lines("reads_not_proven.txt") if _class(line) is not CommandClass.NEEDS_CONFIRMATION
    ] == []


def test_lines_of_agents_that_only_look_like_reading_ask(record_property: Record) -> None:
    """The headings of the file say why each asks."""
    lines = _lines("agents_not_proven.txt")
    unasked = [line for line in lines if _class(line) is CommandClass.READ_ONLY]
    record_property("figure", f"own corpus, lines not proven to read: {len(lines)}, {len(unasked)} run unasked")
    assert unasked == []


def test_the_reasons_of_a_line_that_asks_name_only_what_asks() -> None:
    lines = [*_lines("agents_not_proven.txt"), *_lines("needs_confirmation.txt")]
    for line in lines:
        decision = decide(_SHELL, {}, (RunCommand(command=line, cwd=ROOT),), context(mode=Mode.ASK))
        told = [reason.text for reason in decision.reasons]
        assert decision.verdict is Verdict.REQUIRE_USER_CONFIRMATION
        assert told
        assert not [text for text in told if "only reads" in text or text.startswith("mode ask allows")]
        assert all(text.isprintable() for text in told)

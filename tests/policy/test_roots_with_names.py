"""A workspace in a folder with a protected name, such as a copy of one in `.local/share`: judged like any other."""

from pathlib import Path

import pytest

from tests.policy.views import HOME, ROOT, MemoryView, context
from treadle.policy.decide import decide
from treadle.protocol.permissions import Mode, Verdict
from treadle.protocol.tools import Risk, RunCommand, ToolSpec, ToolTraits

_SHELL = ToolSpec(name="execute_command", description="", parameters={}, traits=ToolTraits(), risk=Risk.EXECUTE)
_COPY = f"{HOME}/.local/share/treadle-writers/n1"
_LINES = Path(__file__).parent / "lines"


def _judge(line: str, root: str) -> tuple[Verdict, list[str]]:
    files = MemoryView(files={root: None, f"{root}/a.txt": "", f"{root}/src": None})
    access = RunCommand(command=line.replace(ROOT, root), cwd=root)
    decided = decide(_SHELL, {}, (access,), context(Mode.FULL, files, roots=(root,)))
    return decided.verdict, [reason.text.replace(root, ROOT) for reason in decided.reasons]


@pytest.mark.parametrize(
    "line",
    [
        "echo x > $(printf n1)",
        'echo x > "$(date +%s).txt"',
        'for f in a*.txt; do cp "$f" "${f%.txt}.md"; done',
        'find . -name "*.md" -exec rm {} +',
        "cd src && echo x > ../$(printf a)",
        "cd src; touch $(printf a)",
        "rm *.txt",
        f"foo --out={ROOT}/x",
        'docker run --rm -v "$PWD":/app node npm test',
    ],
)
def test_ordinary_lines_run_in_a_copy_in_mode_full(line: str) -> None:
    assert _judge(line, _COPY)[0] is Verdict.ALLOW
    assert _judge(line, _COPY) == _judge(line, ROOT)


def test_lines_that_stay_in_it_are_judged_in_a_copy_as_elsewhere() -> None:
    lines = [line.replace("⏎", "\n") for path in _LINES.glob("*.txt") for line in path.read_text().splitlines()]
    staying = [line for line in lines if ".." not in line]
    assert len(staying) > len(lines) // 2
    assert [line for line in staying if _judge(line, _COPY) != _judge(line, ROOT)] == []


@pytest.mark.parametrize(
    "line",
    [
        "echo x > ../$(printf a)",
        "echo x > src/../../$(printf a)",
        "echo x > a/b/../../../$(printf a)",
        "cd .. && echo x > $(printf a)",
        f"echo x > {ROOT}/../$(printf a)",
        f"echo x > {ROOT}2/$(printf a)",
        f"foo --out={ROOT}/../x",
        f"foo --out={ROOT}2/x",
        "echo x > .git/$(printf a)",
        f"foo --out={ROOT}/.git/x",
    ],
)
def test_a_copy_opens_nothing_around_it_and_nothing_protected_in_it(line: str) -> None:
    assert _judge(line, _COPY)[0] is not Verdict.ALLOW

"""What the modes that allow writing may write unasked: only files that the line itself names."""

import pytest

from tests.policy.views import ROOT, MemoryView, context
from treadle.policy.decide import decide
from treadle.protocol.permissions import Mode, Verdict
from treadle.protocol.tools import Risk, RunCommand, ToolSpec, ToolTraits

_SHELL = ToolSpec(name="execute_command", description="", parameters={}, traits=ToolTraits(), risk=Risk.EXECUTE)
_FILES = MemoryView(
    files={
        f"{ROOT}/template": None, f"{ROOT}/template/.envrc": "", f"{ROOT}/plain": None, f"{ROOT}/plain/a.py": "",
        f"{ROOT}/wide": None, **{f"{ROOT}/wide/{number}": "" for number in range(500)},
    }
)  # fmt: skip


def _verdict(line: str, mode: Mode) -> Verdict:
    return decide(_SHELL, {}, (RunCommand(command=line, cwd=ROOT),), context(mode=mode, files=_FILES)).verdict


@pytest.mark.parametrize("mode", [Mode.EDITS, Mode.AUTO])
@pytest.mark.parametrize(
    "line",
    ["ed notes <<< w", "ex notes", "patch -p1 < a.diff", "unzip a.zip", "tar xf a.tar", "tar --extract --file=a.tar",
     "cp -r template/. .", "cp -a template other", "mv template other", "rsync -a template/ .", "cp -r wide other",
     "gzip -r .",
     "cp -r plain other", "mv plain other", "cp -S.md a b", "cp -t . a", "tar czf a.tgz plain",
     "cd plain; cp -r ../template/. .."],
)  # fmt: skip
def test_a_line_that_does_not_say_what_it_writes_asks(line: str, mode: Mode) -> None:
    assert _verdict(line, mode) is Verdict.REQUIRE_USER_CONFIRMATION


@pytest.mark.parametrize("mode", [Mode.EDITS, Mode.AUTO])
@pytest.mark.parametrize(
    "line", ["cp a b", "cp -p a b", "mv a b", "touch a", "mkdir -p a/b", "ls | tee a", "gzip a", "sed -i s/a/b/ a"]
)
def test_a_line_that_writes_what_it_names_runs(line: str, mode: Mode) -> None:
    assert _verdict(line, mode) is Verdict.ALLOW


@pytest.mark.parametrize("line", ["ed notes <<< '!id'", "cat a | ed notes", "ex -s notes <<< '%!sh'"])
def test_an_editor_that_reads_commands_from_elsewhere_asks_in_every_mode(line: str) -> None:
    assert _verdict(line, Mode.FULL) is Verdict.REQUIRE_USER_CONFIRMATION

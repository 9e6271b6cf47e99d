"""Each name of the one table at each guard that looks: path check, decision, shell lines and what redaction reads."""

from pathlib import Path

import pytest

from tests.policy.views import HOME, ROOT, MemoryView, context
from treadle.policy.classify import classify_command
from treadle.policy.decide import decide
from treadle.policy.findings import CommandClass, PathOp
from treadle.policy.path_check import Where, check_path
from treadle.policy.secret_formats import IN_HOME
from treadle.protocol import name_lists as table
from treadle.protocol.permissions import Mode, Verdict
from treadle.protocol.protected_names import control_name, installed_name, secret_name
from treadle.protocol.tools import Access, ReadPath, Risk, ToolSpec, ToolTraits, WritePath

SPEC = ToolSpec(name="write_to_file", description="", parameters={}, traits=ToolTraits(), risk=Risk.WRITE)
USUAL = (Path(__file__).with_name("names") / "usual_secrets.txt").read_text().splitlines()


def _named(*listed: list[str], below: str = "") -> list[str]:
    return [f"{name.replace('*', 'x')}{below}" for names in listed for name in names]


LATER = [
    *_named(table.CONTROL_DIRECTORIES, below="/inner"),
    *_named(table.CONTROL_FILES, table.CONTROL_PATHS, table.INSTALLED_PATHS),
    *(f"hooks/{name}" for name in sorted(table.HOOKS)),
]
SECRET = [
    *_named(table.SECRET_DIRECTORIES, below="/inner"),
    *_named(table.SECRET_FILES, table.SECRET_PATHS),
    *(name for name in USUAL if not name.startswith("/")),
]
PUBLIC = {"passwd"}
"""Listed with another name's copies in mind, and public by itself."""


def test_every_usual_secret_is_known() -> None:
    assert [name for name in USUAL if secret_name(name) is None] == []


@pytest.mark.parametrize("below", ["", "pkg/deep/"])
def test_every_name_is_found_by_its_own_table(below: str) -> None:
    assert [name for name in LATER if not (control_name(below + name) or installed_name(below + name))] == []
    assert [name for name in SECRET if secret_name(below + name) is None] == []


@pytest.mark.parametrize("below", ["", "pkg/deep/"])
def test_the_path_check_protects_every_name(below: str) -> None:
    surroundings = context()

    def milder(names: list[str], op: PathOp) -> list[str]:
        return [name for name in names if check_path(below + name, op, ROOT, surroundings).where is not Where.PROTECTED]

    assert milder([*LATER, *SECRET], PathOp.WRITE) == []
    assert milder(SECRET, PathOp.READ) == []


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize("confines", [False, True])
def test_no_tool_touches_a_name_of_the_table_unasked_in_any_mode(mode: Mode, *, confines: bool) -> None:
    surroundings = context(mode, confines=confines)
    reads: list[Access] = [ReadPath(path=f"{ROOT}/{name}") for name in SECRET]
    writes: list[Access] = [WritePath(path=f"{ROOT}/{name}") for name in (*LATER, *SECRET)]
    assert [one for one in (*reads, *writes) if decide(SPEC, {}, (one,), surroundings).verdict is Verdict.ALLOW] == []


@pytest.mark.parametrize("line", ["echo x > '{}'", "cp a '{}'", "mv a '{}'", "mv '{}' a", "rm -f '{}'", "tee '{}' < a"])
def test_no_line_changes_a_name_of_the_table_without_a_danger(line: str) -> None:
    surroundings = context()
    judged = {name: classify_command(line.format(name), ROOT, surroundings) for name in dict.fromkeys(LATER)}
    assert [name for name, one in judged.items() if one.command_class is not CommandClass.DANGEROUS] == []


@pytest.mark.parametrize("line", ["cat '{}'", "grep x '{}'", "cp '{}' a", "wc < '{}'", "base64 '{}'"])
def test_no_line_reads_a_secret_without_a_danger(line: str) -> None:
    surroundings = context()
    judged = {name: classify_command(line.format(name), ROOT, surroundings) for name in dict.fromkeys(SECRET)}
    assert [name for name, one in judged.items() if one.command_class is not CommandClass.DANGEROUS] == []


def test_the_files_whose_values_are_hidden_are_secrets_of_the_table() -> None:
    assert [name for name in IN_HOME if secret_name(f"{HOME}/{name}") is None] == []


def test_a_folder_is_an_environment_by_what_it_holds_whatever_its_name() -> None:
    surroundings = context(files=MemoryView({f"{ROOT}/tools/pyvenv.cfg": ""}))
    assert check_path("tools/bin/pip", PathOp.WRITE, ROOT, surroundings).where is Where.PROTECTED
    assert check_path("tools/bin/pip", PathOp.READ, ROOT, surroundings).where is Where.INSIDE
    assert check_path("src/bin/pip", PathOp.WRITE, ROOT, surroundings).where is Where.INSIDE


@pytest.mark.parametrize(
    "name",
    ["secrets.py", "token.ts", ".env.example", "docs/secrets.md", "src/env/bin.py", "model.pth", "weights/best.pth",
     "venv.py", "src/venv.ts", "node_modules/left-pad/index.js", "lib/site.py", "auth.json", "package.json",
     "conda.yml", "config/settings.py", "etc/hosts", "credentials.ts", "servers/auth.py", "nuget.md", ".yarnrc.yml"],
)  # fmt: skip
def test_everyday_files_are_read_as_before(name: str) -> None:
    assert secret_name(name) is None
    assert installed_name(name) is None

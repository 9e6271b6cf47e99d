"""Each block of code in a document: commands are read and run, settings and scripts loaded, Python run and typed."""

import ast
import json
import re
import subprocess
import sys
import textwrap
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.architecture.test_shape import ROOT
from tests.cli.conftest import Said
from tests.docs.command_lines import mistake, parts
from tests.docs.pages import Claim, page, pages
from tests.docs.test_code import wrong
from tests.needed import require
from treadle.app.config.layers import load_settings
from treadle.app.instruction_tests.instruction_file import read_instruction_tests
from treadle.cli.main import run
from treadle.policy.rulefile import RuleFile, read_rules
from treadle.policy.rules import Scope
from treadle.protocol.errors import ConfigError
from treadle.providers.scripted.script import load_script

BLOCKS = [block for one in pages() for block in one.blocks()]
SHELL = [block for block in BLOCKS if block.kind == "sh" or block.text.lstrip("$ ").startswith("treadle ")]
LOOKS = (
    *("providers", "config", "policy show", "policy explain", "explain", "tools", "hooks", "sessions", "doctor"),
    *("trust --list", "completion", "prompt show", "usage", "mcp list", "update", "audit verify", "docs"),
)
"""Commands that change nothing and need neither a session nor a network."""
QUIET = ("audit", "sessions")
"""What says nothing where there is no session."""
PLACEHOLDER = re.compile(r"\b(?:ID|KEY|VALUE|NAME|CODE|PATH|FILE|WORDS|URL|DIR|TEXT|7)\b")
IN_PLACE = {
    "KEY": "mode",
    "CODE": "key-missing",
    "PATH": ".",
    "DIR": ".",
    "TEXT": "cart",
    "LINE": "ls",
    "COMMAND": "ls",
}
LIBRARY = "library.md"  # tests/library/test_page.py runs its examples
BEFORE = {
    "docs/editing.md": "text = 'a = 1\\n'\nedit = '------- SEARCH\\na = 1\\n=======\\na = 2\\n+++++++ REPLACE\\n'\n",
    "docs/own-tools.md": "def look_up(city: str, days: int) -> str:\n    return f'{city}: rain for {days} days'\n\n\n",
}
"""What the reader of an example has: a text to edit, a function that knows the weather."""


def of(kind: str) -> list[Claim]:
    return [block for block in BLOCKS if block.kind == kind]


def place(block: Claim) -> str:
    return block.place


@pytest.mark.parametrize("block", SHELL, ids=place)
def test_each_line_of_a_shell_is_read_by_its_command(block: Claim) -> None:
    lines = [line for line in block.text.splitlines() if line.strip()]
    read = [words for line in lines for words in parts(line)]
    assert [(words, why) for words in read if (why := mistake(words))] == []
    targets = [Claim(block.page, block.line, line.partition("#")[0].strip()) for line in lines if line[:5] == "make "]
    assert [(one.text, why) for one in targets if (why := wrong(one))] == []


def looking() -> Iterator[tuple[str, ...]]:
    """The commands of all documents that only look, with something in place of their placeholders."""
    texts = [span.text for one in pages() for span in one.spans()]
    texts += [line for block in SHELL for line in block.text.splitlines()]
    seen = set()
    for words in (tuple(words) for text in texts for words in parts(text)):
        filled = tuple(IN_PLACE.get(word, word) for word in words)
        line = " ".join(filled)
        if not line.startswith(LOOKS) or PLACEHOLDER.search(line) or filled in seen or mistake(filled):
            continue
        if line in ("doctor", "policy explain", "completion", "docs", "tools weather", "mcp list") or line.startswith(
            ("config set", "config unset")
        ):
            continue  # one calls providers, the others need one word more
        seen.add(filled)
        yield filled


@pytest.mark.parametrize("words", sorted(looking()), ids=" ".join)
def test_a_command_that_only_looks_does_what_its_page_says(
    words: tuple[str, ...], home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = home.parent / "folder"
    folder.mkdir()
    monkeypatch.chdir(folder)
    code = run(words)
    said = Said(code, *capsys.readouterr())
    assert said.code == 0, said.err
    assert said.out or said.err or words[0] in QUIET


def test_many_commands_are_run() -> None:
    assert len(list(looking())) > 15


@pytest.mark.parametrize("block", of("toml"), ids=place)
def test_each_toml_block_is_taken_by_what_reads_it(block: Claim, tmp_path: Path) -> None:
    file = tmp_path / "block.toml"
    file.write_text(block.text)
    match block.page:
        case "docs/policy.md":
            assert read_rules(RuleFile(name=file.name, text=block.text, scope=Scope.USER))
        case "docs/scripted-model.md":
            assert load_script(file).turns
        case "docs/instruction_tests.md":
            assert read_instruction_tests(file)
        case "docs/own-tools.md":
            assert tomllib.loads(block.text)["project"]["entry-points"]["treadle.tools"]
        case _:
            load_settings({}, file)


@pytest.mark.parametrize("text", ["max_stepz = 5", "[checkpoints]\nmost_megabytes = 'x'", "mode = 'fast'"])
def test_a_wrong_setting_would_be_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "block.toml").write_text(text)
    with pytest.raises(ConfigError):
        load_settings({}, tmp_path / "block.toml")


@pytest.mark.parametrize("block", of("json"), ids=place)
def test_each_json_block_names_a_command_that_treadle_takes(block: Claim) -> None:
    found = json.loads(block.text)
    (servers,) = found.values()
    (server,) = servers.values()
    assert server["command"] == "treadle"
    assert mistake(server["args"]) == ""


def programs() -> Iterator[tuple[str, str]]:
    """The Python of each page as one program; what awaits at the top is put into a function."""
    for one in pages():
        blocks = [block.text for block in one.blocks() if block.kind == "python"]
        if not blocks or one.name in (LIBRARY, "sdk.md"):
            continue
        text = BEFORE.get(one.path, "") + "\n".join(blocks)
        yield one.path, _in_a_function(text) if re.search(r"^async (?:with|for)", text, re.MULTILINE) else text


def _in_a_function(text: str) -> str:
    imports = "".join(line for line in text.splitlines(keepends=True) if line.startswith(("from ", "import ")))
    rest = text.replace(imports, "")
    return f"{imports}\n\nasync def main() -> None:\n{textwrap.indent(rest, '    ')}"


def test_each_python_block_is_python() -> None:
    for block in of("python"):
        compile(block.text, block.place, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


@pytest.mark.parametrize(("path", "text"), list(programs()), ids=[path for path, _ in programs()])
async def test_each_program_runs(path: str, text: str) -> None:
    defined: dict[str, Any] = {"__file__": str(ROOT / "docs" / "x.py"), "__name__": "example"}
    exec(compile(text, path, "exec"), defined)
    if "main" in defined:
        await defined["main"]()


def test_each_program_and_each_example_of_the_library_is_typed(tmp_path: Path) -> None:
    require("mypy")
    texts = [text for _, text in programs()]
    texts += [block.text for block in page(LIBRARY).blocks() if block.kind == "python"][1:]  # the first one asks
    files = [tmp_path / f"example_{number}.py" for number in range(len(texts))]
    for file, text in zip(files, texts, strict=True):
        file.write_text(text)
    assert len(files) == 9
    command = [sys.executable, "-m", "mypy", *map(str, files)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout


def test_examples_of_skills_rules_and_commands_begin_with_a_header() -> None:
    for block in of("markdown"):
        assert re.match(r"---\n(.+\n)+---\n", block.text), block.place
    assert page("rules.md").text.count("```markdown") == 2

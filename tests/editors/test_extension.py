"""The extension for VS Code as far as it can be tested without an editor."""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.needed import needs, typescript_node

EXTENSION = Path(__file__).parents[2] / "editors" / "vscode"
SOURCES = sorted([*EXTENSION.glob("src/*.ts"), *EXTENSION.glob("webview/*.ts")])
PACKAGE: dict[str, Any] = json.loads((EXTENSION / "package.json").read_text())


@needs("typescript")
def test_the_parts_that_need_no_editor_do_what_their_tests_say() -> None:
    ended = subprocess.run(
        [typescript_node(), "--no-warnings", "--test", "test/*.test.ts"],
        cwd=EXTENSION,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout[-4000:]
    assert re.search(r"^. pass (\d+)$", ended.stdout, re.MULTILINE)


def test_it_needs_nothing_when_it_runs_and_sends_nothing() -> None:
    assert "dependencies" not in PACKAGE
    imported = {name for source in SOURCES for name in re.findall(r"from '([^']+)'", source.read_text())}
    assert {name for name in imported if not name.startswith((".", "node:"))} == {"vscode"}
    whole = "".join(source.read_text() for source in SOURCES)
    assert not re.search(r"node:(https?|net|dgram|tls|dns)\b|\bfetch\(|XMLHttpRequest|WebSocket|[Tt]elemetry", whole)


def test_it_stays_small() -> None:
    assert sum(len(source.read_text().splitlines()) for source in SOURCES) <= 2_500


def test_the_chat_runs_no_other_script_and_loads_nothing_from_elsewhere() -> None:
    page = (EXTENSION / "src" / "chatView.ts").read_text()
    (policy,) = re.findall(r"const csp = `([^`]*)`", page)
    assert policy == "default-src 'none'; img-src data:; style-src ${webview.cspSource}; script-src 'nonce-${nonce}'"
    assert len(re.findall(r"<script", page)) == len(re.findall(r'<script nonce="\$\{nonce\}"', page)) == 1
    assert "innerHTML" not in "".join(source.read_text() for source in SOURCES if source.name != "chat.ts")
    assert re.findall(r"innerHTML = (.*?);", (EXTENSION / "webview" / "chat.ts").read_text()) == ["markdown(source)"]


def test_each_command_is_declared_and_done() -> None:
    declared = {one["command"].removeprefix("treadle.") for one in PACKAGE["contributes"]["commands"]}
    done = set(_done((EXTENSION / "src" / "extension.ts").read_text()))
    assert declared - done == set()
    assert done - declared == {"showSession", "again", "install"}  # only other parts of the extension do these
    used = {one["command"] for rows in PACKAGE["contributes"]["menus"].values() for one in rows}
    assert {name.removeprefix("treadle.") for name in used} <= declared


def _done(source: str) -> Iterator[str]:
    for body in re.findall(r"function \w+Commands\(.*?\n}\n", source, re.DOTALL):
        returned = body[body.index("\n  return {") :]
        yield from (one.strip("'") for one in re.findall(r"^    ('?[\w.]+'?):", returned, re.MULTILINE))


def test_no_file_names_where_packages_were_loaded_from() -> None:
    lock = (EXTENSION / "package-lock.json").read_text()
    assert "resolved" not in lock
    assert "https://registry" not in lock

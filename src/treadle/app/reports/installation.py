"""Checks of this machine that need no network: Python, folders, database, programs, extras."""

import os
import platform
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from treadle.app.config.places import config_file, data_directory, database, outputs
from treadle.app.reports.doctor_checks import Check, fail, failed_check, ok, warn
from treadle.app.security.sandbox_state import describe_sandbox, how_to_confine
from treadle.commit import version_words
from treadle.present.words import counted
from treadle.protocol.errors import StoreError
from treadle.store.opening_store import database_flaw, is_read_only
from treadle.workspace.commands.installed_programs import chromium_program
from treadle.workspace.commands.retention import DAYS, MOST_BYTES, read_outputs
from treadle.workspace.commands.variables import find_outside, path_outside
from treadle.workspace.copies import why_no_copy
from treadle.workspace.installed import extras, install_command, installation, missing_packages
from treadle.workspace.namespaces.session_space import SessionNamespaces
from treadle.workspace.sandbox import Backend, Profile, differences, probe
from treadle.workspace.searching.search import find_ripgrep

_OLDEST_PYTHON = (3, 11)
_PROGRAM_SECONDS = 5.0


def installation_checks() -> Iterator[Check]:
    """Look at everything on this machine, one check after the other."""
    found = installation()
    yield ok("treadle", f"{version_words()}; installed by {found.installer} from {found.origin}")
    yield _python()
    yield _folder("data folder", data_directory())
    yield _folder("config folder", config_file().parent)
    yield _database(database())
    yield _outputs(outputs())
    yield _ripgrep()
    yield _git()
    yield from sandbox_checks(Path.cwd())
    yield _chromium()
    yield _extras()


def sandbox_checks(folder: Path) -> Iterator[Check]:
    """Look at what confines commands in a folder. Takes a moment: each is tried."""
    yield _sandbox()
    yield _shared()
    yield _copies(folder)


def _python() -> Check:
    found = f"{platform.python_version()} ({sys.executable})"
    if sys.version_info[:2] < _OLDEST_PYTHON:
        return fail("python", found, "Install Treadle with Python 3.11 or newer.")
    return ok("python", found)


def _folder(name: str, folder: Path) -> Check:
    """Check that things can be written to a folder, or that it can be made."""
    existing = next(one for one in (folder, *folder.parents) if os.access(one, os.F_OK))
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        return fail(
            name, f"{existing} cannot be written to", f"Correct its permissions, or set TREADLE_HOME; for {folder}."
        )
    return ok(name, str(folder) if existing == folder else f"{folder} (created when needed)")


def _database(file: Path) -> Check:
    if not os.access(file, os.F_OK):
        return ok("database", f"{file} (created with the first session)")
    try:
        flaw = database_flaw(file)
    except StoreError as error:
        return failed_check("database", error)
    if flaw:
        return fail(
            "database",
            f"{file} is damaged: {flaw}",
            f"Move it away, and new sessions start with a new file: mv {file} {file}.damaged",
        )
    if is_read_only(file):
        return warn("database", f"{file} can be read, but not written", "Correct its permissions, or set TREADLE_HOME.")
    return ok("database", str(file))


def _outputs(place: Path) -> Check:
    found = read_outputs(place)
    size = sum(one.bytes for one in found) / 1024**2
    kept = (
        f"files of a session are removed after {DAYS} days, or the oldest above {MOST_BYTES / 1024**2:,.0f} MiB in all"
    )
    return ok("command output", f"{size:,.1f} MiB of {counted(len(found), 'session')} in {place}; {kept}")


def _ripgrep() -> Check:
    program = find_ripgrep({**os.environ, "PATH": path_outside(os.environ.get("PATH", os.defpath), str(Path.cwd()))})
    if not program:
        return ok("ripgrep", "not found (optional): searches are faster with the package ripgrep; or set TREADLE_RG")
    return ok("ripgrep", f"{program} ({_first_line([program, '--version']) or 'cannot be run'})")


def _git() -> Check:
    program = find_outside("git", str(Path.cwd()))
    version = _first_line([program, "--version"]) if program else ""
    if not version:
        return warn("git", "not found", "Install git: checkpoints and changes of repositories need it.")
    return ok("git", f"{program} ({version})")


def _sandbox() -> Check:
    state = probe()
    found = describe_sandbox(state)
    if found.whole:
        return ok("sandbox", found.text)
    if state.backend is None:
        return warn("sandbox", found.text, f"{how_to_confine()} Until then mode auto does not start.")
    lacking = " ".join(differences(state.backend))
    better = f"{how_to_confine()} Until then: " if state.backend is Backend.LANDLOCK else ""
    return warn("sandbox", found.text, f"{better}{lacking}")


def _shared() -> Check:
    """Try whether the commands of a session can share a network and processes, and hosts be allowed one by one."""
    if probe().backend is not Backend.BUBBLEWRAP:
        return ok(
            "commands of a session", "share nothing; the network is asked about as a whole, before or after a run"
        )
    namespaces = SessionNamespaces()
    try:
        namespaces.holder()
        trouble = namespaces.trouble
    finally:
        namespaces.close()
    if trouble:
        fix = "Until that works, no command reaches a server that another one started."
        return warn("commands of a session", f"share nothing: {trouble}", fix)
    return ok("commands of a session", "share loopback, processes and /tmp; other hosts are asked about one by one")


def _copies(workspace: Path) -> Check:
    """Try whether commands can run in a throw-away copy of a folder."""
    folder, data = os.path.realpath(workspace), data_directory()
    with TemporaryDirectory(prefix="treadle-doctor-") as private:
        profile = Profile(root=folder, tmp=private, private=private)
        try:
            trouble = why_no_copy(profile, probe(), data)
        except OSError as error:
            trouble = f"{data} cannot be used: {error.strerror}"
    found = f"none: {trouble}; commands that look can change nothing" if trouble else "overlays work"
    return ok("throw-away copies", f"{found} (in {folder})")


def _chromium() -> Check:
    program = chromium_program(os.environ)
    if not program:
        return ok("chromium", "not found (optional): needed for browser_action; or set TREADLE_CHROMIUM")
    return ok("chromium", program)


def _extras() -> Check:
    """Name the extras: each adds something that work can do without."""
    missing = [extra for extra in sorted(extras()) if missing_packages(extra)]
    there = ", ".join(extra for extra in sorted(extras()) if extra not in missing) or "none"
    if not missing:
        return ok("extras", f"installed: {there}")
    others = f"not installed (optional): {', '.join(missing)}"
    return ok("extras", f"installed: {there}; {others}; to add one: {install_command(missing[0])}")


def _first_line(argv: Sequence[str]) -> str:
    done = _run(argv)
    lines = done.stdout.decode(errors="replace").splitlines() if done is not None and done.returncode == 0 else []
    return lines[0] if lines else ""


def _run(argv: Sequence[str]) -> "subprocess.CompletedProcess[bytes] | None":
    try:
        return subprocess.run(
            argv,
            capture_output=True,
            check=False,
            timeout=_PROGRAM_SECONDS,
            stdin=subprocess.DEVNULL,
            env={"PATH": os.environ.get("PATH", "")},
        )
    except (OSError, subprocess.TimeoutExpired):
        return None

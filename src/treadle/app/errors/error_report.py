"""Errors as a person reads them: what, why, what to do, where the details are."""

import errno
import os
import re
import sys
import traceback
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from treadle.app.config.places import config_file, data_directory, program_log
from treadle.present.failure_words import facts_of
from treadle.present.words import counted, span
from treadle.protocol.errors import ConfigError, TreadleError
from treadle.protocol.models import ErrorKind, ModelError
from treadle.workspace.files.private_file import make_private_folder

if TYPE_CHECKING:
    from treadle.store.opening_store import Repaired
    from treadle.store.reading import Damage

_UNUSABLE = frozenset({errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.ENOTDIR, errno.EIO})

_FIXES: dict[ErrorKind, str] = {
    ErrorKind.AUTHENTICATION: "Store another key with `treadle login PROVIDER`; `treadle providers` shows where keys "
    "come from.",
    ErrorKind.PERMISSION: "The key has no access to this model. Choose another with --model, or ask for access.",
    ErrorKind.BALANCE: "Top up the provider's account, or choose another provider with --model.",
    ErrorKind.RATE_LIMIT: "Wait a while and continue with --continue.",
    ErrorKind.OVERLOADED: "Wait a while and continue with --continue, or choose another model with --model.",
    ErrorKind.SERVER: "Wait a while and continue with --continue.",
    ErrorKind.CONTEXT_TOO_LONG: (
        "Continue with a model with a larger window: --continue --model PROVIDER/NAME (`treadle models` lists "
        "windows). Or start a new session, with smaller files or parts of them."
    ),
    ErrorKind.BAD_REQUEST: (
        "The provider's words say what it does not take. Leave that out, or choose another model with --model. If no "
        "request works, check the base URL."
    ),
    ErrorKind.NOT_FOUND: "Check the base URL and the model name.",
    ErrorKind.CONTENT_FILTER: "Rephrase the request.",
    ErrorKind.NETWORK: "Check the network and the base URL, then continue with --continue.",
    ErrorKind.TIMEOUT: "Check the network and the base URL, then continue with --continue.",
    ErrorKind.MALFORMED_STREAM: "Continue with --continue. If it happens again, check the base URL.",
    ErrorKind.EMPTY_REPLY: "Continue with --continue, or choose another model with --model.",
    ErrorKind.CANCELLED: "Continue with --continue.",
    ErrorKind.BUDGET: "Continue with a higher limit, or with a cheaper model: --continue --model PROVIDER/NAME.",
}


def four_lines(what: str, why: str, fix: str) -> str:
    """Format an error; `why` and `fix` may be empty. The log is named if there is one."""
    lines = [f"treadle: {what}"]
    if why:
        lines.append(f"  why: {_one_line(why)}")
    if fix:
        lines.append(f"  fix: {_one_line(fix)}")
    with suppress(OSError, ConfigError):  # the folder may be unknown, or one that the user may not look into
        lines += [f"  log: {program_log()}"] if program_log().is_file() else []
    return "\n".join(lines)


def describe_error(error: TreadleError) -> str:
    """Format an error of Treadle, with the code that `treadle explain` takes."""
    return four_lines(f"{error.what} [{error.code}]", error.why, error.fix)


def sentences_of(printed: str) -> str:
    """Give what a program of ours printed of its errors as sentences, without the marks of a terminal."""
    without_log = re.sub(r"(?m)^  log: .*$", "", printed)
    without_code = re.sub(r"(?m) \[[a-z]+(-[a-z]+)*\]$", "", without_log)
    return " ".join(re.sub(r"(?m)^(treadle: |  why: |  fix: |# )", "", without_code).split())


def describe_model_error(error: ModelError, model: str) -> str:
    """Format the failure of a model call."""
    what = f"The call of {model} failed ({error.kind})."
    fix = error.fix or _FIXES[error.kind]
    if error.kind is ErrorKind.RATE_LIMIT and (error.retry_after or 0.0) > 60:
        fix = f"The limit resets in {span(error.retry_after or 0.0)}. Continue with --continue then. With "
        fix += "--wait-for-reset Treadle waits by itself."
    return four_lines(what, facts_of(error), fix)


def is_own_folder(error: OSError) -> bool:
    """Whether an error says that the folder of Treadle's data or that of the settings cannot be used."""
    return error.errno in _UNUSABLE and error.filename is not None and bool(_own_folder(error))


def describe_unusable_folder(error: OSError) -> str:
    """Format the error of such a folder: the user may not use it, or its disk is full or read-only."""
    fix = "Correct its permissions or free space on its disk, or set TREADLE_HOME to a folder of yours."
    return four_lines(f"The {_own_folder(error)} cannot be used.", str(error), fix)


def _own_folder(error: OSError) -> str:
    file = Path(os.fsdecode(error.filename) if isinstance(error.filename, bytes) else str(error.filename))
    try:
        own = {"data directory": data_directory(), "configuration folder": config_file().parent}
    except (OSError, ConfigError):  # there is no home, or no current folder
        return ""
    return next((name for name, folder in own.items() if file.is_relative_to(folder)), "")


def describe_crash(error: BaseException) -> str:
    """Format an error that nobody expected, and write its trace to the program's log."""
    saved = write_log("".join(traceback.format_exception(error)))
    why = f"{type(error).__name__}: {error}" + ("" if saved else " (the log could not be written)")
    fix = "This is a bug in Treadle. The session is kept. Continue with `treadle --continue`."
    return four_lines("Something went wrong inside Treadle.", why, fix)


def describe_repaired(repaired: "Repaired") -> str:
    """Say what became of a damaged log."""
    lost = f", {len(repaired.shortened)} up to the damage" if repaired.shortened else ""
    return (
        f"The session log was damaged. The damaged file is kept as {repaired.aside} ({_one_line(repaired.why)}). "
        f"{counted(len(repaired.whole), 'session')} came over whole{lost}."
    )


def damaged_events(damage: "Damage", events: int) -> str:
    """Say what a session goes on without that had so many events."""
    later = counted(events + 1 - damage.first, "event")
    return (
        f"{damage.what} of this session cannot be read ({_one_line(damage.why)}). It continues after event "
        f"{damage.first - 1}. The model does not know what was done later: {later} set aside."
    )


def missing_events(last: int) -> str:
    """Say that the end of a session's log is gone, up to an event that was written."""
    return (
        f"The end of this session's log is missing: event {last} was written and is not there any more. Commands may "
        "have run that the model does not know of."
    )


def resume_line(session_id: str) -> str:
    """Say how to go on with a session."""
    return f"Go on with: treadle --resume {session_id}"


def print_notice(notice: str) -> None:
    """Say something that a person should know but that stops nothing."""
    sys.stderr.write(f"treadle: {notice}\n")
    write_log(notice)


def write_log(text: str) -> bool:
    """Append to the program's log; says whether that worked."""
    stamp = datetime.now(UTC).isoformat(timespec="seconds")
    try:
        file = program_log()
        make_private_folder(file.parent)
        with file.open("a", encoding="utf-8") as stream:
            stream.write(f"{stamp} {text.rstrip()}\n")
    except (OSError, ConfigError):
        return False
    return True


def _one_line(text: str) -> str:
    return " ".join(text.split())

"""What keeps a task from running, in words and by its kind: the environment, the settings, or a defect of ours."""

from treadle.protocol.errors import ConfigError, KeptBackError, TreadleError

_OF_ENVIRONMENT = (
    *("batch-folder", "copy-missing", "export-unwritable", "log-unwritable"),
    *("sandbox-missing", "task-copy", "workspace-missing"),
)


def failure_line(error: Exception) -> str:
    """Say in a line what failed: never nothing, also of errors that have no text of their own."""
    if isinstance(error, TreadleError):
        return " ".join(f"{error.what} {error.why}".split())
    return " ".join(f"{type(error).__name__}: {error}".split()).removesuffix(":") + "."


def kind_of_error(error: Exception) -> str:
    """Name what kind of error keeps a task from running: of its environment, of the settings, or our own."""
    if not isinstance(error, TreadleError) or error.code in _OF_ENVIRONMENT:
        return "environment"
    if error.code == "session-busy":
        return "busy"
    return "setup" if isinstance(error, ConfigError | KeptBackError) else "internal"

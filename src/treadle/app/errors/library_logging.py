"""What libraries log and warn of: a line each in the program's log, never on a terminal or a stream."""

import logging

from treadle.workspace.files.text import visible_name

_LONGEST_LINE = 1_000
_TALKING = ("mcp", "httpx2", "httpcore2")
"""Libraries that log what other computers say."""


class ProgramLog(logging.Handler):
    """Writes what libraries report into the program's log: others wrote parts of it, so it is shown as it is read."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line."""
        from treadle.app.errors.error_report import write_log
        from treadle.present.words import clip_text

        try:
            said = record.getMessage()
        except (TypeError, ValueError, KeyError):  # the arguments do not fit
            said = str(record.msg)
        error = record.exc_info[1] if record.exc_info else None
        why = "" if error is None else f": {error!r}"
        write_log(visible_name(clip_text(f"{record.name}: {said.strip()}{why}", _LONGEST_LINE)))


def log_quietly(*, serving: bool = False) -> None:
    """Have all that libraries log or warn of written there; of a server only errors: clients that go are usual."""
    _log_of(logging.getLogger())
    logging.captureWarnings(capture=True)
    if serving:
        logging.getLogger().setLevel(logging.ERROR)


def log_quietly_inside() -> None:
    """The same inside another program, whose own logging is left as it is: what talks to others is not printed."""
    for name in _TALKING:
        _log_of(logging.getLogger(name))


def _log_of(logger: logging.Logger) -> None:
    if not any(isinstance(one, ProgramLog) for one in logger.handlers):
        logger.addHandler(ProgramLog())

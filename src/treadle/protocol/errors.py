"""What ends a turn or a program, as one tree.

TreadleError                  code, what, why, what to do
├── ConfigError               a setting, key, model name, file or folder is wrong: nothing was started
├── SessionError              a session cannot be opened: unknown, held by another process, newer schema
├── StoreError                the log cannot be read or written
│   └── DriftError            an event of the log does not fit what comes before it
└── RefusedError                an event that is illegal in the present state

What the model should read is never raised past a tool: see `ToolError`. What a provider says is data: `ModelError`.
"""

from treadle.protocol.tools import EditReport


class TreadleError(Exception):
    """An error for a person: a stable code, what happened, why, and what to do about it."""

    def __init__(self, code: str, what: str, *, why: str = "", fix: str = "") -> None:
        super().__init__(what)
        self.code = code
        self.what = what
        self.why = why
        self.fix = fix


class ConfigError(TreadleError):
    """Something the user set, or did not set, keeps Treadle from starting."""


class SessionError(TreadleError):
    """A session cannot be opened."""


class StoreError(TreadleError):
    """The log cannot be read or written."""


class DriftError(StoreError):
    """An event of the log does not fit what comes before it: one is missing or damaged, or the rules changed since.

    `seq` is its number; everything before it can be read.
    """

    def __init__(self, seq: int, event: str, why: str) -> None:
        super().__init__(
            "log-drift",
            f"Event {seq} of the session's log ({event}) does not fit the events before it.",
            why=why,
            fix="`treadle audit verify ID` says whether the log was damaged, `treadle show ID` what is before.",
        )
        self.seq = seq


class RefusedError(TreadleError):
    """An event that is illegal in the present state; the state is unchanged."""

    def __init__(self, event: str, phase: str, why: str) -> None:
        super().__init__("event-refused", f"{event} is not possible in {phase}", why=why)


class KeptBackError(RefusedError):
    """What a person asks for, which a hook of theirs keeps back; the state is unchanged."""

    def __init__(self, what: str, why: str) -> None:
        TreadleError.__init__(self, "kept-back", what, why=why, fix="`treadle hooks` lists the hooks.")

    def __str__(self) -> str:
        return f"{self.what} {self.why}"


class SessionClosedError(RefusedError):
    """An event for a session that is closed, or out of reach."""

    def __init__(self, event: str, why: str) -> None:
        super().__init__(event, "CLOSED", why)


class ToolError(Exception):
    """What the model should read as the error result of a call; `invalid` when the call itself was wrong.

    `edit` tells the ledger which edit was refused, and why.
    """

    def __init__(self, text: str, *, invalid: bool = False, edit: EditReport | None = None) -> None:
        super().__init__(text)
        self.text = text
        self.invalid = invalid
        self.edit = edit


def first_in(group: BaseExceptionGroup[TreadleError]) -> TreadleError:
    """Give the first error of what tasks raised together."""
    error = group.exceptions[0]
    return first_in(error) if isinstance(error, BaseExceptionGroup) else error

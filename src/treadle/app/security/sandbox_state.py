"""The one place that says whether commands can be confined here, how, and what to do when they cannot."""

from dataclasses import dataclass
from typing import assert_never

from treadle.app.config.sections import SandboxUse
from treadle.protocol.errors import ConfigError
from treadle.protocol.permissions import Mode
from treadle.workspace.installed import install_command
from treadle.workspace.sandbox import Backend, SandboxState, probe


def how_to_confine() -> str:
    """Say what a person does so that commands can be confined here."""
    return (
        f"Install the system's package bubblewrap, or run `{install_command('sandbox')}`; and let users create "
        "namespaces (sysctl kernel.unprivileged_userns_clone=1, kernel.apparmor_restrict_unprivileged_userns=0)."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxSummary:
    """What confines commands, in words; `whole` when nothing is lacking."""

    text: str
    whole: bool


def describe_sandbox(state: SandboxState) -> SandboxSummary:
    """Say what confines commands here, or why nothing does."""
    match state.backend:
        case Backend.BUBBLEWRAP:
            return SandboxSummary(text=f"bubblewrap ({state.program})", whole=True)
        case Backend.LANDLOCK:
            return SandboxSummary(text=f"Landlock: {state.reason}", whole=False)
        case Backend.SEATBELT:
            return SandboxSummary(text=f"the system's sandbox ({state.program})", whole=False)
        case None:
            return SandboxSummary(text=f"none: {state.reason}", whole=False)
        case _:
            assert_never(state.backend)


def check_sandbox(mode: Mode, use: SandboxUse) -> None:
    """Raise `ConfigError` where a mode, or the user's settings, cannot do without a sandbox and there is none."""
    if mode is not Mode.AUTO and use is not SandboxUse.REQUIRED:
        return
    state = probe()
    if state.backend is not None:
        return
    wanted = "Mode auto" if mode is Mode.AUTO else 'The setting sandbox = "required"'
    other = " Until then use --mode edits, which asks before each command." if mode is Mode.AUTO else ""
    raise ConfigError(
        "sandbox-missing",
        f"{wanted} needs a sandbox, and this system has none.",
        why=f"{state.reason[:1].upper()}{state.reason[1:]}.",
        fix=how_to_confine() + other,
    )

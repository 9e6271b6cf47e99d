"""Whether a session may use what acts in its folder: found out once, before anything of the folder is read."""

import os
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from treadle.app.config.places import data_directory
from treadle.protocol.errors import ConfigError, StoreError
from treadle.protocol.permissions import Mode
from treadle.protocol.tools import FileChange, Risk
from treadle.store.activation import OF_HOOKS, ActiveFile, ActiveKind, active_kind, changes
from treadle.store.active_items import repository_of
from treadle.store.trusted_folders import Trust, TrustState, TrustStore
from treadle.workspace.files.names import shown_name
from treadle.workspace.files.text import visible

VARIABLE = "TREADLE_TRUST"
"""The environment variable that says yes for a run: 1."""

_LONGEST = 120
"""Characters of a path that are shown; of a longer one the beginning and the end."""

_MOST_NAMED = 3


class SessionTrust(Struct, frozen=True, kw_only=True, dict=True):
    """The user's word on a folder, as a session goes by it from its start to its end.

    `once` is a yes for this session that nobody remembers. `problem` says why the folder cannot be looked through.
    `held_back` is a mode of the user's settings that does not count in the folder, or of a session that is `resumed`;
    `unapproved` is what the settings approve.
    """

    trust: Trust
    once: bool = False
    problem: str = ""
    held_back: Mode | None = None
    resumed: bool = False
    unapproved: tuple[Risk, ...] = ()

    @property
    def workspace(self) -> Path:
        """The folder, resolved."""
        return self.trust.workspace

    @property
    def trusted(self) -> bool:
        """Whether the user said yes to exactly these items."""
        return not self.problem and (self.once or self.trust.state is TrustState.TRUSTED)

    @property
    def items(self) -> Sequence[ActiveFile]:
        """What would act, with the digests that the word is about."""
        return self.trust.items

    @property
    def rules(self) -> Sequence[ActiveFile]:
        """The rules in force: of a trusted folder all, of another one those that were approved by themselves."""
        return [item for item in self.items if item.kind is ActiveKind.RULES] if self.trusted else self.trust.approved

    @cached_property
    def hook_files(self) -> frozenset[str]:
        """The absolute paths of what hooks of the folder run, once it is trusted: protected as control files are."""
        if not self.trusted or not any(item.kind in OF_HOOKS for item in self.items):
            return frozenset()
        from treadle.app.security.hook_files import files_of_hooks

        return files_of_hooks(self.workspace, self.items)

    @cached_property
    def matters(self) -> bool:
        """Whether trust would change something: things would act, did so before, or git may read them later.

        In a copy they may be left out, and what was made of them is still there.
        """
        acts = self.trust.waiting or self.trust.changed or self.trust.copy_of is not None
        return bool(acts or self.problem or repository_of(self.workspace))

    @property
    def lets_code_run(self) -> bool:
        """Whether code of the folder may run confined without asking: it is trusted, or there was nothing to ask."""
        return self.trusted or not self.matters

    @property
    def never_asked(self) -> bool:
        """Whether nobody was asked, as nothing acts in the folder: what git finds below it is not trusted."""
        return not (self.trusted or self.matters)

    @property
    def asks(self) -> bool:
        """Whether the user is to be asked before a session opens."""
        return not (self.trusted or self.problem or self.trust.refused) and self.matters

    def begin(
        self, mode: Mode, *, said: bool, approve: tuple[Risk, ...] = (), resumed: bool = False
    ) -> "tuple[Mode, SessionTrust]":
        """Give the mode to begin with; without trust, a wide one counts only if it was `said` for this run.

        The mode of a session that is `resumed` is its own. What the settings `approve` never counts without trust: it
        is never said for one run.
        """
        if self.trusted or not self.matters:
            return mode, self
        trust = replace(self, unapproved=tuple(risk for risk in approve if risk not in (Risk.NONE, Risk.READ)))
        if said or mode in (Mode.PLAN, Mode.ASK):
            return mode, trust
        return Mode.ASK, replace(trust, held_back=mode, resumed=resumed)

    def notice(self) -> str:
        """Say in one line what is left out; empty where nothing is."""
        if self.problem:
            return f"untrusted: {visible(self.problem)} Nothing in the folder is used."
        left_out = [_named(self.trust)] if self.trust.waiting or self.trust.changed else []
        if self.held_back is not None and not self.resumed:
            left_out.append(f"mode {self.held_back} of the settings")
        if self.unapproved:
            left_out.append(f"approve = {', '.join(self.unapproved)} of the settings")
        if self.trusted:
            return ""
        state = "changed since you trusted it" if self.trust.state is TrustState.CHANGED else "untrusted"
        how = f"To use them: `{trust_command(self.workspace)}`, or --trust for one run."
        said = [f"{state}: not used: {'; '.join(left_out)}. {how}"] if left_out else []
        if self.held_back is not None and self.resumed:
            mode = f"mode {self.held_back} of this session, which continues in mode {Mode.ASK}"
            said.append(f"{state}: not used: {mode}. To use it, choose it again, or add --mode {self.held_back}.")
        return " ".join(said)

    def unattended_notice(self, mode: Mode) -> str:
        """Say in one line what is denied where nobody is asked; empty where nothing is, or `notice` says how it stands.

        Only in these modes could a command of the folder run at all, and does not for want of trust.
        """
        if self.lets_code_run or self.notice() or mode in (Mode.PLAN, Mode.FULL):
            return ""
        how = f"To let them run: `{trust_command(self.workspace)}`, or --trust for one run."
        return f"untrusted: commands that do more than read are denied, as nobody is there to say yes. {how}"


def trust_store() -> TrustStore:
    """Give the store of what the user said of folders."""
    return TrustStore(data_directory() / "trust")


def session_trust(workspace: Path, *, once: bool = False) -> SessionTrust:
    """Find out how a folder (resolved) stands; `once` is the user's yes for one session. Only files are read."""
    try:
        return SessionTrust(trust=trust_store().read(workspace), once=once)
    except StoreError as error:
        unknown = Trust(workspace=workspace, state=TrustState.UNTRUSTED, items=())
        return SessionTrust(trust=unknown, problem=error.what)


def copied_trust(trust: SessionTrust, copy: Path) -> SessionTrust:
    """Give the word on a folder for a whole `copy` of it (resolved), which begins as the same. Raises `StoreError`.

    It is noted, so that the copy stands as its folder does whenever it is opened.
    """
    of = note_copy(trust, copy)
    return replace(trust, trust=replace(trust.trust, workspace=copy, copy_of=of))


def note_copy(trust: SessionTrust, copy: Path) -> Path | None:
    """Keep that a folder is a copy of another one, and give that; None where it needs no trust. Raises `StoreError`."""
    if not trust.matters:
        return None
    of = trust.trust.copy_of or trust.workspace
    trust_store().note_copy(copy.resolve(), of)
    return of


def keep_trusted(trust: SessionTrust, change: FileChange) -> None:
    """Let a rules file stay in force that a person approved with exactly this content.

    A trusted folder stays trusted where nothing else changed. In another one only this file comes into force, and only
    if the person saw all of it: it was new, or approved before.
    """
    name = os.path.relpath(change.path, trust.workspace)
    if active_kind(name) is not ActiveKind.RULES:
        return
    now = session_trust(trust.workspace).trust
    item = next((item for item in now.items if (item.path, item.digest) == (name, change.after)), None)
    if item is None:
        return
    if trust.trusted and not trust.once and now.changed == (name,):
        trust_store().grant(now)
    elif not change.before or trust_store().is_approved(trust.workspace, name, change.before):
        trust_store().approve(now, item)


def whole_trust(workspace: Path) -> Trust:
    """Find out how a folder stands with the rules and repositories below it, which takes a look at each folder."""
    from treadle.store.nested_rules import nested_items, nested_repositories

    resolved = workspace.resolve()
    return trust_store().read(resolved, (*nested_items(resolved), *nested_repositories(resolved)))


def trusted_folders() -> tuple[tuple[Path, str], ...]:
    """List the folders that were trusted with how they stand now; one that is not there any more is "gone"."""
    return tuple(
        (folder, str(session_trust(folder).trust.state) if folder.is_dir() else "gone")
        for folder in trust_store().folders()
    )


def trusted_by_variable() -> bool:
    """Whether the environment says yes for this run; raises `ConfigError` for what is neither yes nor no."""
    said = os.environ.get(VARIABLE, "")
    if said not in ("", "0", "1"):
        raise ConfigError(
            "config-value",
            f"A setting from the environment variable {VARIABLE} is wrong.",
            why=f"{said!r} is neither 1 nor 0.",
            fix="Set it to 1 to trust the folder for this run, or unset it.",
        )
    return said == "1"


def trust_command(workspace: Path) -> str:
    """Write the command that trusts a folder."""
    import shlex

    return f"treadle trust {shown_path(shlex.quote(str(workspace)))}"


def shown_path(path: str) -> str:
    """Write a path in one harmless line."""
    line = shown_name(path)
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST // 2]}…{line[-(_LONGEST // 2 - 1) :]}"


def trust_report(trust: SessionTrust) -> str:
    """Say how a session stands to its folder, and what has changed in the folder since it opened."""
    state = "trusted for this session" if trust.once else "trusted" if trust.trusted else "not trusted"
    from treadle.app.security.trusted_rules import allow_lines

    lines = [f"{shown_path(str(trust.workspace))} is {state}.", *trust_lines(trust.trust), *allow_lines(trust.trust)]
    if not trust.items:
        lines.append("  It has no rules, settings, servers or hooks.")
    changed = changes(trust.items, session_trust(trust.workspace).items)
    if changed:
        lines.append(f"Changed since the session opened, and not used in it: {', '.join(map(shown_path, changed))}")
    if not trust.trusted or changed:
        lines.append(f"To trust it, run `{trust_command(trust.workspace)}` and start a new session.")
    return "\n".join(lines)


def trust_lines(trust: Trust) -> Iterator[str]:
    """List what would act: its kind, the beginning of its digest, its path, and how that differs from before.

    What is new or changed comes first, then the kinds that are few.
    """
    width = max((len(item.kind) for item in trust.listed), default=len("gone"))
    present = {item.path for item in trust.listed}
    for item in sorted(
        trust.listed, key=lambda item: (item.path not in trust.changed, item.kind is ActiveKind.SETTINGS, item)
    ):
        mark = "" if item.path not in trust.changed else "  (changed)" if item.path in trust.known else "  (new)"
        yield f"  {item.kind:<{width}}  {item.digest[:16]:<16}  {shown_path(item.path)}{_target(trust, item)}{mark}"
    for path in sorted(set(trust.changed) - present):
        yield f"  {'gone':<{width}}  {'':<16}  {shown_path(path)}"


def _target(trust: Trust, item: ActiveFile) -> str:
    try:
        return f" -> {shown_path(str((trust.workspace / item.path).readlink()))}"
    except OSError:
        return ""


def _named(trust: Trust) -> str:
    names = [shown_path(item.path) for item in trust.waiting] or ["what it held"]
    more = len(names) - _MOST_NAMED
    listed = [*names[:_MOST_NAMED], *([f"{more} more"] if more > 0 else [])]
    return ", ".join(listed)

"""What the policy knows of a session: its workspace, mode and rules, and how it stands."""

import os
from collections.abc import Callable, Collection
from pathlib import Path

from treadle.app.config.places import config_file, data_directory
from treadle.app.security.confining import NOTHING, Confining
from treadle.app.security.file_view import DiskView
from treadle.app.security.policy_files import PolicyFiles, usual_places
from treadle.app.session.files.roots import Roots
from treadle.policy.decision_context import PolicyContext
from treadle.policy.rules import Ruleset
from treadle.policy.urls import check_url
from treadle.protocol.permissions import Standing
from treadle.protocol.tools import Risk
from treadle.workspace.checkpoints.unkept import Unkept
from treadle.workspace.ignore.access_lists import AccessLists
from treadle.workspace.namespaces.listeners import machine_ports

_NONE = Roots()


def policy_context(  # noqa: PLR0913 - what decisions depend on
    root: str,
    standing: Standing,
    *,
    trusted: bool,
    never_asked: bool = False,
    confining: Confining = NOTHING,
    approved: Collection[Risk] = (),
    further: Roots = _NONE,
    home: str = "",
    rules: Ruleset | None = None,
    unapproved: frozenset[str] = frozenset(),
    own_ports: Callable[[], frozenset[int]] = frozenset,
    hook_files: frozenset[str] = frozenset(),
) -> PolicyContext:
    """Put together what the policy knows of a workspace at `root`, which is absolute and resolved.

    `further` are the other folders of it. Without `home` it is the user's; without `rules` those count that stand in
    the rule files now. `unapproved` are tools of servers that nobody has said yes to; on `own_ports` commands of the
    session listen. `hook_files` are those that hooks of the folder run. `never_asked`: nothing acts
    in the workspace.
    """
    unkept = Unkept((root, *further.folders))
    state = (str(data_directory()), str(config_file().parent))
    chosen = bool(os.environ.get("TREADLE_HOME"))
    return PolicyContext(
        mode=standing.mode,
        roots=(root, *further.folders),
        untrusted=further.untrusted,
        files=DiskView(),
        home=home or str(Path.home()),
        state=() if chosen else state,
        own=state if chosen else (),
        trusted=trusted,
        never_asked=never_asked,
        confines=confining.there,
        hidden=confining.hidden,
        private=confining.private,
        brokers=confining.brokers,
        machine_serves=lambda port: port in machine_ports() and port not in own_ports(),
        unkept=unkept if confining.there and confining.keeps else None,
        overwritten=unkept.by_overwriting,
        try_first=confining.try_first,
        tainted=standing.tainted,
        approved=frozenset(approved),
        hosts=frozenset(check_url(url).host for url in standing.fetched),
        listed=AccessLists((root, *further.folders)).reason,
        rules=PolicyFiles(usual_places(Path(root)), keep=False).ruleset() if rules is None else rules,
        unapproved=unapproved,
        hook_files=hook_files,
    )

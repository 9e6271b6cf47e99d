"""How the session of a subagent is opened: under the settings of who begins it."""

from typing import TypeVar

from msgspec import UNSET
from msgspec.structs import replace

from treadle.app.config.addresses import bind_base_url
from treadle.app.config.sections import Settings
from treadle.app.models.model_notes import named_profile, plain_ref
from treadle.app.session.children.wanted_child import WantedChild
from treadle.app.session.parts import Brought
from treadle.protocol.models import ToolProtocol
from treadle.protocol.tools import Flow

_Opening = TypeVar("_Opening", bound=Brought)


def child_opening(opening: _Opening, settings: Settings, wanted: WantedChild) -> _Opening:
    """Say how a subagent is opened: without the servers of who began it, and without checkpoints of its own."""
    settings = bind_base_url(replace(settings, model=plain_ref(wanted.model), modes={}), wanted.model)
    settings = replace(
        settings,
        profile=named_profile(wanted.model),
        mode=wanted.mode,
        thinking_budget=wanted.thinking,
        add_dirs=wanted.roots,
        checkpoints=replace(settings.checkpoints, enabled=False),
        checklist=wanted.inherits is not UNSET and settings.checklist,
    )
    if wanted.program is not None:
        settings = replace(settings, tool_protocol=ToolProtocol.NATIVE, base_url="", fallback="")
    return replace(
        opening,
        workspace=wanted.trust.workspace,
        settings=settings,
        user_present=wanted.user_present,
        given=frozenset({"mode"}),
        resume=wanted.session_id if wanted.known else "",
        session_id=wanted.session_id,
        trust=wanted.trust,
        tools=tuple(tool for tool in opening.tools if tool.spec.traits.flow is not Flow.END_TURN),  # it is the task's
        servers=(),
        only_servers=True,
        exchanges={},
        editor=None if wanted.in_copy else opening.editor,
        shape=wanted.shape,
        open_child=None,
        child=wanted,
        models=opening.models if wanted.program is None else (wanted.program,),
    )

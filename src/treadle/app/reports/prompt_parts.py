"""The system prompt of a folder for a person: its parts, as a session with these settings would send them."""

from collections.abc import Sequence

from msgspec.structs import replace

from treadle.app.config.places import config_file, database
from treadle.app.config.sections import ModelSettings, Settings
from treadle.app.models.model_choice import Models
from treadle.app.security.trusting import SessionTrust
from treadle.app.session.offering import ANSWERED, NO_NOTEBOOKS, has_notebooks, offering, out_of_session
from treadle.app.session.own_tools import own_tools
from treadle.app.session.rules.instructions import RuleBook
from treadle.app.session.rules.prompting import Prompting, family_of, load_agents, load_skills, session_prompt
from treadle.context.transcript import estimated_tokens
from treadle.protocol.base import Record
from treadle.protocol.errors import ConfigError
from treadle.protocol.models import ModelSpec, ToolProtocol
from treadle.store.sqlite import Store
from treadle.tools.tool_catalogue import builtin_tools
from treadle.workspace.workspace import open_workspace


class ShownPart(Record, frozen=True, kw_only=True, omit_defaults=False):
    """One part; `origin` is empty for a text of Treadle's own."""

    name: str
    tokens: int
    text: str
    origin: str


class ShownPrompt(Record, frozen=True, kw_only=True, omit_defaults=False):
    """The prompt of one model. `folder` is where the user may put parts of their own."""

    model: str
    family: str
    tool_protocol: ToolProtocol
    folder: str
    parts: Sequence[ShownPart]


def shown_prompt(settings: Settings, trust: SessionTrust) -> ShownPrompt:
    """Build the prompt as a session would; needs no key, and no model: without one, any other is meant."""
    spec = _spec(settings)
    protocol = settings.tool_protocol or settings.models.get(spec.ref, ModelSettings()).tool_protocol
    if protocol is None:
        protocol = ToolProtocol.NATIVE if spec.native_tools else ToolProtocol.XML
    built_in = builtin_tools(open_workspace(trust.workspace))
    tools = (*built_in, *own_tools([tool.spec.name for tool in built_in]).tools)
    skills = load_skills(trust)
    prompting = Prompting(
        settings=settings,
        rules=RuleBook(trust),
        skills=skills,
        agents=load_agents(trust, ()),
        specs={tool.spec.name: tool.spec for tool in tools},
        window=lambda _: spec.context_window,
    )
    store = Store(database())
    try:
        always_out = out_of_session(settings, skills=skills is not None and skills.callable)
        if not has_notebooks(str(trust.workspace)):
            always_out = {**always_out, **NO_NOTEBOOKS}
        left_out = offering(store, lambda _: spec, always_out)
        parts = session_prompt(prompting, left_out)(spec.ref, protocol, replace(ANSWERED, mode=settings.mode))
    finally:
        store.close()
    return ShownPrompt(
        model=spec.ref if spec.name else "",
        family=settings.models.get(spec.ref, ModelSettings()).family or family_of(spec.ref),
        tool_protocol=protocol,
        folder=str(config_file().parent / "prompts"),
        parts=[
            ShownPart(
                name=part.name,
                tokens=estimated_tokens(len(part.text.encode())),
                text=part.text,
                origin=part.origin,
            )
            for part in parts
        ],
    )


def _spec(settings: Settings) -> ModelSpec:
    models = Models(settings)
    if settings.model:
        return models.spec(settings.model)
    try:
        return models.choose().spec
    except ConfigError:
        return ModelSpec(provider="", name="")

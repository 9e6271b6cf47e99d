"""What a session asks about models: what is known of one, how to change to it, and which there are."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct

from treadle.app.config.sections import SandboxUse, Settings
from treadle.app.models.model_choice import Models, OwnModel
from treadle.app.models.model_notes import PROGRAM_REF, as_now, plain_ref
from treadle.protocol.errors import SessionError
from treadle.protocol.events import SetModel
from treadle.protocol.models import ModelChoice, ModelSpec
from treadle.protocol.permissions import Mode

if TYPE_CHECKING:
    from treadle.app.models.offered import NextRequest, OfferedModel


class ModelFinder(Struct, frozen=True, kw_only=True):
    """What is known of a model, and how to change to it; all raise `ConfigError` for one that cannot be called.

    `choose` takes the tokens that it may think, None as set. `notices` are what to tell the user of a model. `for_mode`
    gives the model that a mode has of its own, with the profile of the present one, None where the modes share one.
    `offered` lists what there is to choose from, and takes its time. `cheaper` names a model that takes a costly
    request for less. `settings` are those of the session.
    """

    spec: Callable[[str], ModelSpec]
    choose: Callable[[str, int | None], SetModel]
    for_mode: Callable[[Mode, str], Awaitable[ModelChoice | None]]
    notices: Callable[[str], Sequence[str]] = lambda ref: ()  # noqa: ARG005
    offered: "Callable[[], Sequence[OfferedModel]]" = tuple
    cheaper: "Callable[[NextRequest], str]" = lambda sent: ""  # noqa: ARG005
    settings: Settings | None = None


def require_model(ref: str, own: Sequence[OwnModel]) -> None:
    """Raise `SessionError` for the session of a program, which nobody can go on with but who runs the program."""
    if ref == PROGRAM_REF and not any(one.spec.ref == ref for one in own):
        raise SessionError(
            "session-program",
            "This session is that of a program of code mode.",
            why="The program made its calls, and no model is there to answer.",
            fix="Continue the session that began it: `treadle sessions --tree` shows which one.",
        )


def require_sandbox(mode: Mode, settings: Settings) -> None:
    """Raise `ConfigError` where there must be a sandbox and is none."""
    if mode is Mode.AUTO or settings.sandbox is SandboxUse.REQUIRED:
        from treadle.app.security.sandbox_state import check_sandbox

        check_sandbox(mode, settings.sandbox)


def set_model(models: Models, ref: str = "", thinking: int | None = None) -> SetModel:
    """Choose a model, by default that of the settings, and how much it thinks. Raises `ConfigError`."""
    return SetModel(choice=models.choose(ref, thinking=thinking).use)


async def model_for(models: Models, settings: Settings, mode: Mode, present: str) -> ModelChoice | None:
    """Find the model that a mode has of its own; raises `ConfigError` for a mode that cannot be here.

    `present` is the model that is called now: its profile stays.
    """
    require_sandbox(mode, settings)
    if not models.differ_by_mode:
        return None
    await models.ask_server(mode=mode)
    ref = settings.in_mode(mode).model or plain_ref(models.choose(mode=mode).spec.ref)
    return models.choose(as_now(ref, present, settings.profile), mode=mode).use


def model_finder(models: Models, settings: Settings) -> ModelFinder:
    """Give a session what it asks about models."""
    return ModelFinder(
        spec=models.spec,
        choose=partial(set_model, models),
        for_mode=partial(model_for, models, settings),
        notices=models.notices,
        offered=partial(_offered, models),
        cheaper=partial(_cheaper, models, settings),
        settings=settings,
    )


def _cheaper(models: Models, settings: Settings, sent: "NextRequest") -> str:
    from treadle.app.models.cheaper import cheaper_model

    return cheaper_model(models, settings, sent)


def _offered(models: Models) -> "Sequence[OfferedModel]":
    """List the models to choose from; what reads them is loaded when somebody wants to choose."""
    from treadle.app.models.model_rows import offered_models

    return offered_models(models)

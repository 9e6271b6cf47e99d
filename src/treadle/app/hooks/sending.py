"""What hooks say of what a person asks for, before it is done: a message, or another model."""

from collections.abc import Callable

from msgspec.structs import replace

from treadle.app.hooks.hook_words import keeps_back
from treadle.app.hooks.session_hooks import SessionHooks
from treadle.engine.ports import HookWord
from treadle.protocol.attach import SessionStatus
from treadle.protocol.errors import KeptBackError
from treadle.protocol.events import Op, Prompt, SetMode, SetModel, Source
from treadle.protocol.messages import Enclosure, EnclosureKind, Text, text_of, without_own_commands
from treadle.protocol.models import ModelChoice

_HOST = "sdk"


async def heard_op(
    hooks: SessionHooks, op: Op, source: Source, *, status: SessionStatus, tell: Callable[[str], None]
) -> Op:
    """Let hooks look at an op: they may add to a message, or keep it or another model back. Raises `RefusedError`.

    A mode that has a model of its own changes in any case: then the model stays, and `tell` says so.
    """
    match op:
        case Prompt():
            return await _heard_prompt(hooks, op)
        case SetModel(choice=choice) | SetMode(choice=ModelChoice() as choice) if choice.model != status.model:
            by = _HOST if source.kind == _HOST else "command"
            word = await hooks.before_model(status.model, choice.model, source=by, tokens=status.tokens)
        case _:
            return op
    if not keeps_back(word):
        return op
    refusal = _refusal(f"A hook kept the model {choice.model} from being used.", word)
    if isinstance(op, SetModel):
        raise refusal
    tell(f"{refusal} The mode changes without it.")
    return replace(op, choice=None)


async def _heard_prompt(hooks: SessionHooks, prompt: Prompt) -> Prompt:
    word = await hooks.on_prompt(text_of(without_own_commands(prompt.content)))
    if keeps_back(word):
        raise _refusal("A hook kept the message from being sent.", word)
    if not word.context:
        return prompt
    said = Enclosure(kind=EnclosureKind.HOOK, origin=word.by or "hook", content=(Text(text=f"[Hook] {word.context}"),))
    return replace(prompt, enclosed=(*prompt.enclosed, said))


def _refusal(what: str, word: HookWord) -> KeptBackError:
    said = (word.reason or word.stop or "It gave no reason").rstrip(".")
    return KeptBackError(what, f"{said}. It comes from the {word.by}." if word.by else f"{said}.")

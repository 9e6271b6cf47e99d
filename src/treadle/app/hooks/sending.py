"""What hooks say of a message before it is sent."""

from msgspec.structs import replace

from treadle.engine.ports import HookDecision, Hooks
from treadle.protocol.errors import RefusedError
from treadle.protocol.events import Prompt
from treadle.protocol.messages import Enclosure, EnclosureKind, Text, text_of, without_own_commands


async def heard_prompt(hooks: Hooks, prompt: Prompt, phase: str) -> Prompt:
    """Let hooks look at a message: they may add to it, or keep it from being sent. Raises `RefusedError`."""
    word = await hooks.on_prompt(text_of(without_own_commands(prompt.content)))
    if word.decision is HookDecision.DENY or word.stop is not None:
        refusal = RefusedError("Prompt", phase, (word.reason or word.stop or "It gave no reason").rstrip("."))
        refusal.what, refusal.fix = "A hook kept the message from being sent.", "`treadle hooks` lists the hooks."
        raise refusal
    if not word.context:
        return prompt
    said = Enclosure(kind=EnclosureKind.HOOK, origin=word.by or "hook", content=(Text(text=f"[Hook] {word.context}"),))
    return replace(prompt, enclosed=(*prompt.enclosed, said))

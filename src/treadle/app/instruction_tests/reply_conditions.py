"""What the replies of a model depend on, by name: when one of these is another one, a tape says nothing any more."""

from collections.abc import Iterable, Mapping
from hashlib import sha256

import msgspec

from treadle.protocol.events import Event, OfferChanged, SessionStarted
from treadle.protocol.sealed import PromptPart
from treadle.protocol.tools import ToolSpec
from treadle.store.activation import ActiveFile, ActiveKind
from treadle.tools.declarations import BROWSER_ACTION, USE_SKILL

_READ = {ActiveKind.RULES: "rule file", ActiveKind.SKILL: "skill", ActiveKind.COMMAND: "command file"}
"""Files of a folder that a model reads; hooks and settings it does not."""

_BY_MACHINE = frozenset({f"tool {USE_SKILL.name}", f"tool {BROWSER_ACTION.name}"})
"""Tools that are offered or not by what is installed, or by the user's own files."""

_OWN_PARTS = frozenset({"work", "checklist", "git", "tools", "examples"})


def reply_conditions(
    prompt: str, files: Iterable[ActiveFile], events: Iterable[Event], folder: str
) -> Mapping[str, str]:
    """Give the digests of what the replies of a session depend on, by names for a person.

    `files` are those of its folder as they were when it began, `events` are those of its log.

    Texts that only the user of this machine has, such as rules of their own for every project, are none of it.
    """
    found = {"prompt": _digest(prompt)}
    found |= {f"{_READ[one.kind]} {one.path}": one.digest for one in files if one.kind in _READ}
    offer = None
    for event in events:
        match event.data:
            case SessionStarted(choice=choice, mode=mode):
                found |= {
                    "model": choice.model,
                    "mode": mode.value,
                    "tool protocol": choice.tool_protocol.value,
                }
            case OfferChanged() if offer is None:
                offer = event.data
            case _:
                pass
    if offer is not None:
        rules = {f"{_READ[ActiveKind.RULES]} {one.origin}": _digest(one.text) for one in offer.system if _is_rule(one)}
        found |= rules
        found |= {f"system prompt, part {one.name}": _digest(one.text) for one in offer.system if _is_own(one)}
        found |= {f"tool {one.name}": _of_tool(one, folder) for one in offer.tools}
    return found


def _is_rule(part: PromptPart) -> bool:
    """Whether a part is a rule of the folder, or what one imports, and not of the user's own files."""
    return part.name == "rules" and bool(part.origin) and not part.origin.startswith(("/", "~"))


def _is_own(part: PromptPart) -> bool:
    return not part.origin and (part.name in _OWN_PARTS or part.name.startswith("tool "))


def _of_tool(spec: ToolSpec, folder: str) -> str:
    declared = {"description": spec.description, "parameters": spec.parameters}
    return _digest(msgspec.json.encode(declared, order="sorted").decode().replace(folder, "."))


def _digest(text: str) -> str:
    return sha256(text.encode(errors="surrogateescape")).hexdigest()[:16]


def changed_conditions(recorded: Mapping[str, str], now: Mapping[str, str]) -> tuple[str, ...]:
    """Name what is not as it was when a tape was recorded."""
    found = []
    for name in [*recorded, *(name for name in now if name not in recorded)]:
        before, after = recorded.get(name), now.get(name)
        if before == after or (name in _BY_MACHINE and None in (before, after)):
            continue
        if before is None:
            found.append(f"{name} is new")
        elif after is None:
            found.append(f"{name} is gone")
        elif name in ("model", "mode", "tool protocol"):
            found.append(f"{name} was {before} and is {after}")
        else:
            found.append(f"{name} changed")
    return tuple(found)

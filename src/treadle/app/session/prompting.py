"""The system prompt of a session: the parts for the model's family, the rules and the skills."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

from msgspec import Struct

from treadle.app.config.settings import ModelSettings, Settings
from treadle.app.places import config_file
from treadle.app.prompts import OwnTexts, family_of, prompt_parts
from treadle.app.security.trusting import SessionTrust
from treadle.app.session.instructions import RuleBook
from treadle.context.system import describe_tool
from treadle.protocol.models import ToolProtocol
from treadle.protocol.permissions import Situation
from treadle.protocol.sealed import PromptPart
from treadle.protocol.tools import ToolSpec
from treadle.store.activation import ActiveKind

if TYPE_CHECKING:
    from treadle.app.session.skills import SkillBook

_SKILLS = """# Skills

Each is a text that says how to do one kind of work. Before work that one of them is about, call `use_skill` with its \
name, and follow what it says.
"""
_WINDOW = 200_000
"""Tokens; taken where a model's window is unknown."""

_CHARACTERS_PER_TOKEN = 3.6


class Prompting(Struct, frozen=True, kw_only=True):
    """What the prompt of a session is made of. `specs` are the tools by name, `window` gives a model's tokens."""

    settings: Settings
    rules: RuleBook
    skills: "SkillBook | None"
    specs: Mapping[str, ToolSpec]
    window: Callable[[str], int | None]

    def parts(self, model: str, protocol: ToolProtocol, tools: Sequence[str]) -> tuple[PromptPart, ...]:
        """Give the parts for a model (`provider/name`) that is told of these tools."""
        return tuple(self._parts(model, protocol, tools))

    def _parts(self, model: str, protocol: ToolProtocol, tools: Sequence[str]) -> Iterator[PromptPart]:
        family = self.settings.models.get(model, ModelSettings()).family or family_of(model)
        own = OwnTexts(
            folder=config_file().parent / "prompts",
            instructions=self.settings.instructions,
            language=self.settings.language,
        )
        yield from prompt_parts(family, protocol, own, checklist=self.settings.checklist)
        if protocol is ToolProtocol.XML:
            for name in tools:
                yield PromptPart(name=f"tool {name}", text=describe_tool(self.specs[name]))
        yield from self.rules.parts()
        if self.skills is not None and "use_skill" in tools:
            most = int((self.window(model) or _WINDOW) / 100 * _CHARACTERS_PER_TOKEN)
            yield PromptPart(name="skills", text=f"{_SKILLS}\n{self.skills.listing(most)}")


def session_prompt(
    prompting: Prompting, left_out: Callable[[str, Situation], Mapping[str, str]]
) -> Callable[[str, ToolProtocol, Situation], tuple[PromptPart, ...]]:
    """Build the prompt once for each model, tool protocol, tools and rules that are turned off."""

    @cache
    def built(
        model: str,
        protocol: ToolProtocol,
        names: tuple[str, ...],
        off: frozenset[str],  # noqa: ARG001 - a key
    ) -> tuple[PromptPart, ...]:
        return prompting.parts(model, protocol, names)

    def system(model: str, protocol: ToolProtocol, situation: Situation) -> tuple[PromptPart, ...]:
        gone = left_out(model, situation)
        names = tuple(name for name in prompting.specs if name not in gone)
        return built(model, protocol, names, prompting.rules.switches.off())

    return system


def load_skills(trust: SessionTrust) -> "SkillBook | None":
    """Find the skills; None where there are none, and then what reads them is not loaded."""
    if not (any(item.kind is ActiveKind.SKILL for item in trust.items) and trust.trusted) and not _has_own_skills():
        return None
    from treadle.app.session.skills import SkillBook, find_skills

    book = SkillBook(find_skills(trust))
    return book if book.all else None


def _has_own_skills() -> bool:
    home = os.path.expanduser("~")  # noqa: PTH111 - far quicker than a Path
    places = (f"{config_file().parent}/skills", f"{home}/.agents/skills", f"{home}/.claude/skills")
    return any(map(os.path.isdir, places))

"""The system prompt of a session: the parts for the model's family, the rules and the skills."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from treadle.app.config.places import config_file, user_agent_folders
from treadle.app.config.sections import ModelSettings, Settings
from treadle.app.security.trusting import SessionTrust
from treadle.app.session.rules.instructions import RuleBook
from treadle.context.system import describe_tool
from treadle.protocol.models import ToolProtocol
from treadle.protocol.patterns import regex
from treadle.protocol.permissions import Situation
from treadle.protocol.sealed import PromptPart
from treadle.protocol.tools import ToolSpec
from treadle.store.activation import ActiveKind
from treadle.tools.declarations import USE_SKILL, USE_SUBAGENTS

if TYPE_CHECKING:
    from treadle.app.session.rules.skills import SkillBook
    from treadle.app.subagents.agent_files import AgentFile

PARTS = ("work", "checklist", "git", "tools", "examples")
"""The parts that have files, in their order. `NAME.md` is for every model; `NAME-FAMILY.md`, `NAME-PROTOCOL.md` and
`NAME-PROTOCOL-FAMILY.md` stand in for it. An empty file leaves the part out.
"""

NEXT, GENERIC, LOCAL = "next", "generic", "local"
FAMILIES = (NEXT, GENERIC, LOCAL)
"""Strong models that need little said, others, and small ones that work better with examples."""

_MARKS: Sequence[tuple[str, tuple[str, ...]]] = (
    (GENERIC, ("-nano", "-mini", "-lite", "-haiku-3", "-3-haiku", "distill")),
    (NEXT, ("claude-opus-4", "claude-sonnet-4", "claude-haiku-4", "claude-4", "claude-opus-5", "claude-sonnet-5")),
    (NEXT, ("gpt-5", "gpt-6", "codex", "openai/o3", "gemini-2-5-pro", "gemini-3", "grok-4", "grok-5", "grok-code")),
    (NEXT, ("deepseek-v3-2", "deepseek-v4", "kimi-k2", "glm-4-6", "glm-4-7", "glm-5", "minimax-m2", "qwen3-coder-480")),
    (LOCAL, ("ollama/", "lmstudio/", "llama-cpp/", "vllm/", "local/")),
)
"""Parts of a model's name, `provider/model` in small letters with hyphens, and the family it is then of."""

_SIZE = regex(r"[-:/](\d{1,3})b(?:$|[-:@/])")
_SMALL = 34
"""Thousand millions of parameters: models up to these are small, wherever they run."""

_FOLDER = Path(__file__).parent.parent.parent / "prompts"
_LONGEST = 65_536
_SKILLS = """# Skills

Each is a text that says how to do one kind of work. Before work that one of them is about, call `use_skill` with its \
name, and follow what it says.
"""
_AGENTS = """# Agents

Besides `explore` and `worker`, `use_subagents` has these:
"""
_WINDOW = 200_000
"""Tokens; taken where a model's window is unknown."""

_CHARACTERS_PER_TOKEN = 3.6
_LONGEST_ABOUT, _MOST_AGENTS = 200, 50


class OwnTexts(Struct, frozen=True, kw_only=True):
    """What the user says of the prompt: files in `folder` in place of Treadle's, instructions, and a language."""

    folder: Path | None = None
    instructions: str = ""
    language: str = ""


class Prompting(Struct, frozen=True, kw_only=True):
    """What the prompt of a session is made of. `specs` are the tools by name, `window` gives a model's tokens.

    `agents` are descriptions of agents by name, `of_servers` gives the parts of MCP servers.
    """

    settings: Settings
    rules: RuleBook
    skills: "SkillBook | None"
    agents: Mapping[str, str]
    specs: Mapping[str, ToolSpec]
    window: Callable[[str], int | None]
    of_servers: Callable[[], tuple[PromptPart, ...]] = tuple

    def parts(
        self, model: str, protocol: ToolProtocol, tools: Sequence[str], of_servers: Sequence[PromptPart] = ()
    ) -> tuple[PromptPart, ...]:
        """Give the parts for a model (`provider/name`) that is told of these tools."""
        return tuple(self._parts(model, protocol, tools, of_servers))

    def _parts(
        self, model: str, protocol: ToolProtocol, tools: Sequence[str], of_servers: Sequence[PromptPart]
    ) -> Iterator[PromptPart]:
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
        yield from of_servers
        yield from self.rules.parts()
        if self.skills is not None and self.skills.for_model and USE_SKILL.name in tools:
            most = int((self.window(model) or _WINDOW) / 100 * _CHARACTERS_PER_TOKEN)
            yield PromptPart(name="skills", text=f"{_SKILLS}\n{self.skills.listing(most)}")
        if self.agents and USE_SUBAGENTS.name in tools:
            rows = (f"- {name}: {' '.join(about.split())[:_LONGEST_ABOUT]}" for name, about in self.agents.items())
            yield PromptPart(name="agents", text="\n".join((_AGENTS, *islice(rows, _MOST_AGENTS))))


def session_prompt(
    prompting: Prompting, left_out: Callable[[str, Situation], Mapping[str, str]]
) -> Callable[[str, ToolProtocol, Situation], tuple[PromptPart, ...]]:
    """Build the prompt once for each model, tool protocol, tools and rules that are turned off."""

    @cache
    def built(
        model: str,
        protocol: ToolProtocol,
        names: tuple[str, ...],
        of_servers: tuple[PromptPart, ...],
        *,
        off: frozenset[str],  # noqa: ARG001 - a key
    ) -> tuple[PromptPart, ...]:
        return prompting.parts(model, protocol, names, of_servers)

    def system(model: str, protocol: ToolProtocol, situation: Situation) -> tuple[PromptPart, ...]:
        gone = left_out(model, situation)
        names = tuple(name for name in prompting.specs if name not in gone)
        return built(model, protocol, names, prompting.of_servers(), off=prompting.rules.switches.off())

    return system


def load_skills(trust: SessionTrust) -> "SkillBook | None":
    """Find the skills; None where there are none, and then what reads them is not loaded."""
    if not (any(item.kind is ActiveKind.SKILL for item in trust.items) and trust.trusted) and not _has_own_skills():
        return None
    from treadle.app.session.rules.skills import SkillBook, find_skills

    book = SkillBook(find_skills(trust))
    return book if book.all else None


def load_agents(trust: SessionTrust, given: "Sequence[AgentFile]") -> Mapping[str, str]:
    """Find what agents there are besides the built-in ones: their descriptions by name."""
    home = os.path.expanduser("~")  # noqa: PTH111 - far quicker than a Path
    of_folder = trust.trusted and any(item.kind is ActiveKind.AGENT for item in trust.items)
    if not (given or of_folder or any(map(os.path.isdir, user_agent_folders(home)))):
        return {}
    from treadle.app.subagents.agent_files import built_in_agents, read_agents

    found = {**read_agents(trust, Path(home))[0], **{one.name: one for one in given}}
    usual = built_in_agents()
    return {name: one.description for name, one in found.items() if one != usual.get(name)}


def _has_own_skills() -> bool:
    home = os.path.expanduser("~")  # noqa: PTH111 - far quicker than a Path
    places = (f"{config_file().parent}/skills", f"{home}/.agents/skills", f"{home}/.claude/skills")
    return any(map(os.path.isdir, places))


def family_of(ref: str) -> str:
    """Name the family of a model by its name, `provider/model`."""
    name = ref.lower().replace(".", "-").replace("_", "-")
    found = next((family for family, marks in _MARKS if any(mark in name for mark in marks)), GENERIC)
    if found != GENERIC:
        return found
    size = _SIZE.search(name)
    return LOCAL if size is not None and int(size[1]) <= _SMALL else GENERIC


def prompt_parts(family: str, protocol: ToolProtocol, own: OwnTexts, *, checklist: bool = True) -> list[PromptPart]:
    """Give the parts of the prompt that are the same in every folder."""
    shipped, users = _files(_FOLDER), _files(own.folder)
    names = [name for name in PARTS if checklist or name != "checklist"]
    found = [_part(name, family, protocol, (users, shipped)) for name in names]
    if own.language:
        text = f"Write to the user in {own.language}, whatever language the task and the files are in."
        found.insert(1, PromptPart(name="language", text=text, origin="setting language"))
    if own.instructions:
        text = f"# Instructions of the user\n\nThey hold for every task:\n\n{own.instructions.strip()}"
        found.append(PromptPart(name="instructions", text=text, origin="setting instructions"))
    return [part for part in found if part.text]


def _part(name: str, family: str, protocol: ToolProtocol, places: Sequence[Mapping[str, Path]]) -> PromptPart:
    """Read the most telling file of a part; one of the user goes before all of Treadle's."""
    wanted = (f"{name}-{protocol}-{family}.md", f"{name}-{family}.md", f"{name}-{protocol}.md", f"{name}.md")
    for files in places:
        for file in (files[one] for one in wanted if one in files):
            text = _read(file)
            if text is not None:
                origin = "" if file.parent == _FOLDER else str(file)
                return PromptPart(name=name, text=text, origin=origin)
    return PromptPart(name=name, text="")


def _files(folder: Path | None) -> Mapping[str, Path]:
    if folder is None:
        return {}
    try:
        return {name: folder / name for name in os.listdir(folder) if name.endswith(".md")}  # noqa: PTH208
    except OSError:
        return {}


def _read(file: Path) -> str | None:
    """Read a text; None for what is no plain file, so that Treadle's own is used."""
    try:
        if not file.is_file():
            return None
        with file.open("rb") as stream:
            return stream.read(_LONGEST).decode("utf-8", errors="replace").strip()
    except OSError:
        return None

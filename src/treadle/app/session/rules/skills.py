"""Skills: texts that say how to do one kind of work, named to the model, and read when they are used."""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from treadle.app.config.places import config_file
from treadle.app.security.trusting import SessionTrust
from treadle.context.frontmatter import Header, read_header
from treadle.protocol.errors import ToolError
from treadle.protocol.patterns import regex
from treadle.store.activation import SKILL_FILE, ActiveFile, ActiveKind
from treadle.store.active_items import listed_item, read_item
from treadle.tools.use_subagents import WRITER, SubagentTask
from treadle.workspace.files.names import shown_name

LONGEST_DESCRIPTION = 1_536
LONGEST_SKILL = 65_536
"""Characters of a skill that are used."""

_MOST_SKILLS = 500
_NAME = regex(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_INDEXED = regex(r"\$ARGUMENTS\[(\d{1,2})\]")


class Skill(Struct, frozen=True, kw_only=True):
    """One skill. `place` is the folder that `item` is listed from; `problem` says what is wrong with its header.

    `unused` says why it cannot be used at all. `for_model` and `for_user` say who may begin it. One with an `agent` is
    followed by a subagent, with this `model` and `effort` in the place of those of the agent if they are not empty.
    """

    name: str
    description: str
    place: Path
    item: ActiveFile
    problem: str = ""
    unused: str = ""
    for_model: bool = True
    for_user: bool = True
    hint: str = ""
    agent: str = ""
    model: str = ""
    effort: str = ""

    @property
    def origin(self) -> str:
        """Name its file where a person or a log names it."""
        return shown_name(str(self.place / self.item.path))

    @property
    def folder(self) -> Path:
        """The folder that its files are in."""
        return (self.place / self.item.path).parent


def find_skills(trust: SessionTrust) -> tuple[Skill, ...]:
    """List the user's skills, and those of the folder if it is trusted; of two with one name the first is used."""
    found = [_read_skill(place, item) for place, item in (*_users_items(), *_folder_items(trust))]
    return tuple(_first_of_each_name(found))


def skill_places() -> tuple[Path, ...]:
    """Give the user's own folders of skills, Treadle's first."""
    home = Path.home()
    return (config_file().parent / "skills", home / ".agents" / "skills", home / ".claude" / "skills")


def _users_items() -> Iterator[tuple[Path, ActiveFile]]:
    for place in skill_places():
        try:
            names = sorted(os.listdir(place))[:_MOST_SKILLS]  # noqa: PTH208 - names suffice
        except OSError:
            continue
        for name in names:
            if os.path.lexists(place / name / SKILL_FILE):
                yield place, listed_item(place, f"{name}/{SKILL_FILE}", ActiveKind.SKILL)


def _folder_items(trust: SessionTrust) -> Iterator[tuple[Path, ActiveFile]]:
    if trust.trusted:
        yield from ((trust.workspace, item) for item in trust.items if item.kind is ActiveKind.SKILL)


def _read_skill(place: Path, item: ActiveFile) -> Skill:
    folder_name = Path(item.path).parent.name
    header, unused = _header(place, item)
    name = header.text("name") or folder_name
    problems = [header.problem]
    if name != folder_name or not _NAME.fullmatch(name) or len(name) > 64:
        problems.append(f"Its name {name!r} is not that of its folder, in small letters, digits and hyphens.")
        name = folder_name
    description = " ".join(f"{header.text('description')} {header.text('when_to_use')}".split())
    if not description and not unused:
        problems.append("Its header has no description.")
        description = next((line.strip("# \t") for line in header.body.splitlines() if line.strip()), "")
    if len(description) > LONGEST_DESCRIPTION:
        problems.append(f"Only the first {LONGEST_DESCRIPTION:,} characters of its description are used.")
    agent = _agent(header, problems)
    return Skill(
        name=name,
        description=description[:LONGEST_DESCRIPTION],
        place=place,
        item=item,
        problem=" ".join(filter(None, problems)),
        unused=unused,
        for_model=not header.truth("disable-model-invocation"),
        for_user=header.text("user-invocable") != "false",
        hint=header.text("argument-hint"),
        agent=agent,
        model="" if header.text("model") == "inherit" else header.text("model"),
        effort=header.text("effort"),
    )


def _agent(header: Header, problems: list[str]) -> str:
    """Give the agent of the subagent that follows a skill; empty for one that its session follows itself."""
    context, agent = header.text("context"), header.text("agent")
    if context == "fork":
        return agent or WRITER
    if context:
        problems.append(f"Its context {context!r} is not known, so no subagent follows it. Only `fork` is.")
    elif agent:
        problems.append("Its agent is used with `context: fork` only.")
    return ""


def _header(place: Path, item: ActiveFile) -> tuple[Header, str]:
    """Read a skill; gives also why it cannot be used."""
    content = _content(place, item)
    if content is None:
        return Header(values={}, body=""), "It cannot be read, leads out of the folder, or is not as you trusted it."
    if b"\0" in content:
        return Header(values={}, body=""), "It is not text in UTF-8."
    header = read_header(content.decode(errors="replace"))
    return header, "" if header.body.strip() else "It has no text."


def _content(place: Path, item: ActiveFile) -> bytes | None:
    inside = Path(os.path.realpath(place / item.path)).is_relative_to(os.path.realpath(place))
    # A skill of the user's own may be linked from elsewhere; one of a project may not.
    if not inside and place not in skill_places():
        return None
    content = read_item(place, item)
    return None if content is None else content[: 4 * LONGEST_SKILL]


def _first_of_each_name(skills: Iterable[Skill]) -> Iterator[Skill]:
    seen: dict[str, Skill] = {}
    for skill in skills:
        first = seen.get(skill.name)
        if first is None and not skill.unused:
            seen[skill.name] = skill
        yield skill if first is None else replace(skill, unused=f"{first.folder / SKILL_FILE} has the same name.")


class SkillBook:
    """The skills of one session, by name."""

    def __init__(self, skills: Sequence[Skill]) -> None:
        self.all = tuple(skills)
        self._usable: Mapping[str, Skill] = {skill.name: skill for skill in skills if not skill.unused}

    @property
    def for_model(self) -> tuple[Skill, ...]:
        """The skills that the model is told of."""
        return tuple(skill for skill in self._usable.values() if skill.for_model)

    @property
    def callable(self) -> bool:
        """Whether there is one that the model may call, if only where the user has entered it."""
        return any(skill.for_model or (skill.agent and skill.for_user) for skill in self._usable.values())

    def listing(self, most: int) -> str:
        """Name the skills in at most about so many characters: with their descriptions as far as these fit."""
        lines: list[str] = []
        bare: list[str] = []
        left = most
        for skill in self.for_model:
            by_subagent = " (a subagent follows it, and you read its answer)" if skill.agent else ""
            line = f"- {skill.name}: {skill.description}{by_subagent}"
            if len(line) < left:
                lines.append(line)
                left -= len(line) + 1
            else:
                bare.append(skill.name)
        if bare:
            shown = bare[: max(1, most // 32)]
            more = f" and {len(bare) - len(shown)} more" if len(bare) > len(shown) else ""
            lines.append(f"- Also: {', '.join(shown)}{more}")
        return "\n".join(lines)

    def called(
        self, name: str, arguments: str = "", *, subagents: bool, entered: Callable[[str], bool]
    ) -> str | SubagentTask:
        """Read a skill that the model calls; with `subagents` one that asks for one is a task.

        One that only the user begins it may call where they have `entered` it. Raises `ToolError` as `text` does.
        """
        skill = self._find(name)
        if not (skill.for_model or (skill.agent and entered(skill.origin))):
            raise self._none(name)
        text = self.text(name, arguments)
        if not (skill.agent and subagents):
            return text
        title = f"Skill {skill.name} {arguments}".rstrip()
        return SubagentTask(prompt=text, agent=skill.agent, title=title, model=skill.model, effort=skill.effort)

    def entered(self, name: str, arguments: str = "") -> str:
        """Read a skill that the user enters: where a subagent follows it, that the model is to call it."""
        if not self._find(name).agent:
            return self.text(name, arguments)
        called = f"`use_skill` with the name {json.dumps(name)}"
        if arguments.strip():
            called += f" and these arguments: {json.dumps(arguments, ensure_ascii=False)}"
        return f"A subagent follows this skill. Call {called}. Then tell the user what came of it."

    def _find(self, name: str) -> Skill:
        skill = self._usable.get(name.removeprefix("/").strip())
        if skill is None:
            raise self._none(name)
        return skill

    def _none(self, name: str) -> ToolError:
        names = ", ".join(one.name for one in self.for_model) or "none"
        return ToolError(f"There is no skill {name!r}. Use one of: {names}.", invalid=True)

    def text(self, name: str, arguments: str = "") -> str:
        """Read a skill as it is used now. Raises `ToolError` for one that there is not, or that was changed."""
        skill = self._find(name)
        content = _content(skill.place, skill.item)
        if content is None:
            raise ToolError(f"The skill {name} was changed or removed since the session began. Continue without it.")
        text = read_header(content.decode(errors="replace")).body.strip()
        if len(text) > LONGEST_SKILL:
            text = f"{text[:LONGEST_SKILL]}\n[cut after {LONGEST_SKILL} characters]"
        return f"Base directory for this skill: {skill.folder}\n\n{_filled(text, arguments, skill.folder)}"


def _filled(text: str, arguments: str, folder: Path) -> str:
    """Put the arguments in; where the text has no place for them, they follow it."""
    from shlex import split

    text = text.replace("${CLAUDE_SKILL_DIR}", str(folder))
    if "$ARGUMENTS" not in text:
        return f"{text}\n\nARGUMENTS: {arguments}" if arguments.strip() else text
    try:
        words = split(arguments)
    except ValueError:
        words = arguments.split()
    text = _INDEXED.sub(lambda found: words[int(found[1])] if int(found[1]) < len(words) else "", text)
    return text.replace("$ARGUMENTS", arguments)

"""What a command line says of the tools, the prompt and the answer of a session that nobody sits at."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from treadle.cli.command_line import WISHES
from treadle.door.hosts import PROMPT, ListedTools, listed_tools, server_tools, split_tools, structured_answer
from treadle.door.program import print_notice
from treadle.protocol.errors import ConfigError
from treadle.protocol.permissions import Mode

if TYPE_CHECKING:
    from treadle.door.hosts import StructuredAnswer
    from treadle.door.opening import Opening


class Wishes(Struct, frozen=True, kw_only=True):
    """What was said: lists of tools as they are written, texts for the prompt, the form of the answer."""

    allowed: Sequence[str] = ()
    disallowed: Sequence[str] = ()
    only: str | None = None
    system: str = ""
    append: str = ""
    structured: "StructuredAnswer | None" = None

    def listed(self, root: Path) -> ListedTools:
        """Say what the lists come to in the folder `root`; what is not taken as it was written is shown."""
        said = {"allowed": self.allowed, "disallowed": self.disallowed}
        tools = {name: [one for text in texts for one in split_tools(text)] for name, texts in said.items()}
        only = None if self.only in (None, "default") else split_tools(self.only or "")
        listed = listed_tools(root, only=only, **tools)
        for note in listed.notes:
            print_notice(note)
        append = self.append
        if self.structured is not None:
            append = f"{append}\n\n{PROMPT}".strip()
        # Hosts send an empty prompt where their user said nothing.
        return replace(listed, shape=replace(listed.shape, system=self.system or None, append=append))

    def server_tools(self) -> tuple[str, ...]:
        """Name the tools of MCP servers that run without a question: `mcp__SERVER__TOOL`, `mcp__SERVER`."""
        return server_tools([one for text in self.allowed for one in split_tools(text)])

    def shaped(self, opening: "Opening") -> "Opening":
        """Give the opening of a session as it is wanted."""
        listed = self.listed(opening.workspace)
        settings, given = opening.settings, opening.given
        if listed.edits and settings.mode is Mode.ASK:
            settings, given = replace(settings, mode=Mode.EDITS), given | {"mode"}
        opening = replace(opening, settings=settings, given=given, shape=listed.shape)
        if (answer := self.structured) is None:
            return opening
        return replace(opening, tools=(*opening.tools, answer), hooks=(*opening.hooks, answer.hook))


def wishes_of(said: Mapping[str, Any]) -> Wishes:
    """Read what was said with flags of the main command. Raises `ConfigError`."""
    structured = None
    if schema := said.get("json_schema"):
        structured = structured_answer(schema)
    return Wishes(
        allowed=said.get("allowed_tools") or (),
        disallowed=said.get("disallowed_tools") or (),
        system=said.get("system_prompt") or "",
        append=said.get("append_system_prompt") or "",
        structured=structured,
    )


def refuse_wishes(said: Mapping[str, Any]) -> None:
    """Raise `ConfigError` where something was said that is for a task in a script only."""
    flag = next((name for name in WISHES if said.get(name)), "")
    if flag:
        raise ConfigError(
            "print-only",
            f"--{flag.replace('_', '-')} needs -p.",
            why="It is for tasks in a script. In the terminal the modes and the rules decide.",
            fix="Add -p TASK, or leave the flag out.",
        )

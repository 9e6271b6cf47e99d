"""The slash commands, in one table for every surface."""

from collections.abc import Mapping
from enum import Flag, auto
from types import MappingProxyType

from msgspec import Struct

from treadle.app.security.op_effects import Reach
from treadle.protocol.permissions import Mode


class Surfaces(Flag):
    """Where a command works: in the terminal that has the session, in an attached one, in `treadle -p`."""

    FIRST = auto()
    ATTACHED = auto()
    HEADLESS = auto()
    TERMINALS = FIRST | ATTACHED
    ALL = FIRST | ATTACHED | HEADLESS


class SlashCommand(Struct, frozen=True, kw_only=True):
    """A command: its name, what follows it (in brackets where that can be left out), what it does, and where.

    `effect` says how far that reaches, `given` how far it reaches when something follows it, where that is farther.
    `instead` says what to do where it does not work. `takes_time`: it reads files or runs programs. `key` is a key of
    the terminal app, with what it does where that is not the same.
    """

    name: str
    effect: Reach
    given: Reach | None = None
    arguments: str = ""
    about: str
    key: str = ""
    where: Surfaces = Surfaces.ALL
    instead: str = ""
    takes_time: bool = False

    @property
    def group(self) -> str:
        """What it is for, as lists of commands are divided: one of `SLASH_GROUPS`."""
        return next(group for group, names in SLASH_GROUPS.items() if self.name in names)

    @property
    def usage(self) -> str:
        """The command as it is written."""
        return f"/{self.name} {self.arguments}".rstrip()

    @property
    def about_in_terminal(self) -> str:
        """What it does, with its key."""
        return f"{self.about} ({self.key})" if self.key else self.about

    def refusal(self, argument: str) -> str:
        """Say why what follows it cannot: it takes nothing. Empty where it can."""
        return f"/{self.name} takes no text behind it. Nothing was done." if argument and not self.arguments else ""

    def effect_of(self, argument: str) -> Reach:
        """What it does with what follows it."""
        return self.given if self.given is not None and argument.strip() else self.effect


SLASH_GROUPS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "work": (
            *("model", "profile", "mode", "plan", "act", "effort", "compact", "undo", "rewind", "btw", "todo", "init"),
            *("newrule", "pin", "goal", "steer", "queue", "edit", "drop", "review", "copies"),
        ),
        "session": ("new", "clear", "resume", "rename", "fork", "copy", "export", "quit"),
        "look inside": (
            *("help", "context", "cost", "status", "diff", "usage", "jobs", "ports", "approvals"),
            "permissions",
        ),
        "set up": (
            *("config", "login", "theme", "add-dir", "mcp", "rules", "memory", "skills", "agents", "hooks"),
            *("trust", "revoke", "doctor"),
        ),
    }
)
"""The commands by what they are for, in the order in which lists show them: what is used most comes first."""

_TERMINALS = Surfaces.TERMINALS
_ROWS: tuple[SlashCommand, ...] = (
    SlashCommand(
        name="steer",
        effect=Reach.WORK,
        arguments="TEXT",
        about="send TEXT at the next step",
        key="Ctrl-S does the same",
        where=_TERMINALS,
    ),
    SlashCommand(name="queue", effect=Reach.SEE, about="list the queued prompts", where=_TERMINALS),
    SlashCommand(name="drop", effect=Reach.WORK, arguments="N", about="drop a queued prompt", where=_TERMINALS),
    SlashCommand(
        name="edit",
        effect=Reach.WORK,
        arguments="N",
        about="move a queued prompt to the input line to change it",
        where=_TERMINALS,
    ),
    SlashCommand(
        name="mode",
        effect=Reach.WORK,
        arguments="NAME",
        about=", ".join(Mode),
        key="Shift-Tab: the next of plan, ask, edits",
    ),
    SlashCommand(
        name="plan",
        effect=Reach.WORK,
        arguments="[TEXT]",
        about="look and plan, change nothing (mode plan); TEXT is sent then",
    ),
    SlashCommand(
        name="act",
        effect=Reach.WORK,
        arguments="[TEXT]",
        about="end plan mode: changes need your approval (mode ask); TEXT is sent then",
    ),
    SlashCommand(
        name="model",
        effect=Reach.WORK,
        arguments="[NAME]",
        about="choose the model from a list, or by its name, provider/name",
        key="Alt-P",
    ),
    SlashCommand(
        name="profile",
        effect=Reach.SEE,
        given=Reach.WORK,
        arguments="[NAME]",
        about="list the profiles of keys, or use one in this session; `usual` stands for the keys without a profile",
    ),
    SlashCommand(
        name="effort", effect=Reach.WORK, arguments="[LEVEL]", about="how much the model thinks: off, low, medium, high"
    ),
    SlashCommand(
        name="btw",
        effect=Reach.WORK,
        arguments="QUESTION",
        about="ask a side question; it does not stay in the conversation",
    ),
    SlashCommand(
        name="compact",
        effect=Reach.WORK,
        arguments="[FOCUS]",
        about="free space in the model's window; FOCUS says what must be kept",
    ),
    SlashCommand(
        name="pin",
        effect=Reach.WORK,
        arguments="[TEXT]",
        about="keep TEXT in the conversation when it is compacted; without TEXT list the pins, `off N` removes one",
    ),
    SlashCommand(
        name="goal",
        effect=Reach.SEE,
        given=Reach.WORK,
        arguments="[CONDITION]",
        about="keep working until CONDITION is met; `--check 'CMD'`: CMD decides; `pause`, `resume`, `clear`",
    ),
    SlashCommand(
        name="init",
        effect=Reach.WORK,
        arguments="[TEXT]",
        about="let the model look at the project and write AGENTS.md",
    ),
    SlashCommand(
        name="new",
        effect=Reach.WORK,
        about="start a new session",
        where=Surfaces.FIRST,
        instead="To start a new session: treadle",
    ),
    SlashCommand(
        name="clear",
        effect=Reach.WORK,
        about="start a new session, as /new does; this one is kept",
        where=Surfaces.FIRST,
        instead="To start a new session: treadle",
    ),
    SlashCommand(
        name="resume",
        effect=Reach.WORK,
        arguments="[WORDS]",
        about="choose another session from a list and continue it",
        where=_TERMINALS,
        instead="To continue a session: treadle --resume ID (`treadle sessions` lists them).",
    ),
    SlashCommand(
        name="rename", effect=Reach.WORK, arguments="NAME", about="give the session another name", takes_time=True
    ),
    SlashCommand(
        name="fork",
        effect=Reach.WORK,
        arguments="[N]",
        about="copy the session as it was after turn N, or as it is now; this one does not change",
        takes_time=True,
    ),
    SlashCommand(
        name="rewind",
        effect=Reach.WORK,
        arguments="[N] [PART]",
        about="go back to before message N (PART: files or conversation, else both); without N choose a message",
        takes_time=True,
    ),
    SlashCommand(name="undo", effect=Reach.WORK, about="undo what the last turn changed in the files", takes_time=True),
    SlashCommand(
        name="export",
        effect=Reach.WORK,
        given=Reach.OWN_COMMANDS,
        arguments="[FORMAT] [PATH]",
        about="write the session to a file: md, html or json",
        takes_time=True,
    ),
    SlashCommand(
        name="copy",
        effect=Reach.SEE,
        arguments="[N]",
        about="copy the last answer as the model wrote it, or its code block N; `list` shows the blocks",
        where=_TERMINALS,
        instead="To write the session to a file: /export",
        takes_time=True,
    ),
    SlashCommand(
        name="diff",
        effect=Reach.SEE,
        about="show the changes that are not committed",
        takes_time=True,
    ),
    SlashCommand(name="status", effect=Reach.SEE, about="show session, model, mode, folder and what is going on"),
    SlashCommand(
        name="context",
        effect=Reach.SEE,
        arguments="[left]",
        about="show what the model was sent: each part with its tokens and price",
        takes_time=True,
    ),
    SlashCommand(name="cost", effect=Reach.SEE, about="show what this session cost so far", takes_time=True),
    SlashCommand(
        name="usage",
        effect=Reach.SEE,
        arguments="[KEY]",
        about="show what all sessions used, by model or KEY: day, project, profile, tool, mode, session",
        takes_time=True,
    ),
    SlashCommand(
        name="todo", effect=Reach.SEE, about="show the task's checklist, and the file in which you can change it"
    ),
    SlashCommand(
        name="mcp",
        effect=Reach.SEE,
        given=Reach.SERVERS,
        arguments="[approve NAME]",
        about="list the MCP servers and their state; `approve NAME` accepts the tools of one as they are now",
        takes_time=True,
    ),
    SlashCommand(name="jobs", effect=Reach.SEE, about="list commands that run in the background", takes_time=True),
    SlashCommand(
        name="ports",
        effect=Reach.SEE,
        given=Reach.PORTS,
        arguments="[N]",
        about="list the ports on which commands listen; `N` opens one on this machine, `close N` closes it",
        takes_time=True,
    ),
    SlashCommand(
        name="permissions",
        effect=Reach.SEE,
        about="show what runs without asking: mode, allowances and rules",
        takes_time=True,
    ),
    SlashCommand(
        name="rules",
        effect=Reach.SEE,
        given=Reach.RULES,
        arguments="[off N]",
        about="list the rules for the model, with their tokens; `off N` and `on N` turn one off and on",
        takes_time=True,
    ),
    SlashCommand(
        name="newrule", effect=Reach.WORK, arguments="[TEXT]", about="let the model write a rule for this project"
    ),
    SlashCommand(
        name="memory",
        effect=Reach.SEE,
        given=Reach.RULES,
        arguments="[add TEXT]",
        about="list what is remembered, with dates and tokens; `add TEXT`, `forget N`, `edit` change it",
        takes_time=True,
    ),
    SlashCommand(name="skills", effect=Reach.SEE, about="list the skills; /NAME uses one", takes_time=True),
    SlashCommand(
        name="agents",
        effect=Reach.SEE,
        about="list the agents for subagents, and the subagents of this session",
        takes_time=True,
    ),
    SlashCommand(
        name="hooks",
        effect=Reach.SEE,
        about="list the hooks: what each runs, when, and which do not run",
        takes_time=True,
    ),
    SlashCommand(name="approvals", effect=Reach.SEE, about="list what you have allowed for this session"),
    SlashCommand(name="revoke", effect=Reach.WORK, arguments="N", about="remove an approval; /approvals lists them"),
    SlashCommand(
        name="trust", effect=Reach.SEE, about="show what this folder's files would run or set, and whether you trust it"
    ),
    SlashCommand(name="config", effect=Reach.SEE, about="show the settings and where each comes from", takes_time=True),
    SlashCommand(
        name="login",
        effect=Reach.KEYS,
        arguments="[PROVIDER]",
        about="store a provider's key; it is not shown, and it is used from the next request on",
        where=_TERMINALS,
        instead="To store a provider's key: treadle login PROVIDER",
    ),
    SlashCommand(
        name="add-dir",
        effect=Reach.SEE,
        given=Reach.WIDER,
        arguments="[PATH]",
        about="list the further folders; PATH adds one, `off N` removes one, in a copy of the session",
        where=_TERMINALS,
        instead="To start with a further folder: treadle --add-dir PATH",
        takes_time=True,
    ),
    SlashCommand(
        name="theme",
        effect=Reach.SEE,
        given=Reach.SETTINGS,
        arguments="[NAME]",
        about="show or choose the colours: auto, dark, light, ansi; they are saved in your settings",
        where=_TERMINALS,
        instead="To choose the colours of the terminal: treadle config set theme NAME",
        takes_time=True,
    ),
    SlashCommand(name="doctor", effect=Reach.SEE, about="check the installation; calls no provider", takes_time=True),
    SlashCommand(name="help", effect=Reach.SEE, arguments="[NAME]", about="show this, or what one command does"),
    SlashCommand(
        name="quit", effect=Reach.WORK, about="quit; the session is kept and can be resumed", where=_TERMINALS
    ),
    SlashCommand(
        name="review",
        effect=Reach.WORK,
        arguments="[RANGE]",
        about="review what is not committed, or a range of git, in the background; `list` shows the findings, "
        "`apply N` lets the model apply one",
        takes_time=True,
    ),
    SlashCommand(
        name="copies",
        effect=Reach.SEE,
        given=Reach.WORK,
        arguments="[show ID]",
        about="list the kept copies of this folder; `show`, `apply` and `discard ID` show, apply and remove one",
        takes_time=True,
    ),
)

_BY_NAME: Mapping[str, SlashCommand] = MappingProxyType({row.name: row for row in _ROWS})
SLASH_TABLE: tuple[SlashCommand, ...] = tuple(_BY_NAME[name] for names in SLASH_GROUPS.values() for name in names)
"""Every command, in the order of its group."""

NEW_SESSION = "new"
"""In the place of a session's id: a new one is to be opened."""

SYNONYMS: Mapping[str, str] = MappingProxyType({"?": "help", "exit": "quit"})


def slash_names() -> tuple[str, ...]:
    """Give the names, without the slash."""
    return tuple(row.name for row in SLASH_TABLE)


def find_slash(name: str) -> SlashCommand | None:
    """Find a command by its name."""
    return _BY_NAME.get(SYNONYMS.get(name, name))

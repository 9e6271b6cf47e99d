"""What a client can choose in a session: modes, models, how much they think, and commands."""

import asyncio
from collections.abc import Iterator, Sequence

from treadle.acp.shapes import OpenAnswer, SelectOption, SelectValue, SessionMode, SessionModes
from treadle.door.commands import SLASH_TABLE, WRITTEN_HERE, NamedText, SlashCommand, Surfaces
from treadle.door.known_models import EFFORT_BUDGETS, OfferedModel
from treadle.door.open_session import SessionAccess, require_sandbox
from treadle.door.settings import Settings
from treadle.present.escape import printable
from treadle.present.mode_words import mode_sentence
from treadle.present.words import clip_text
from treadle.protocol.errors import ConfigError
from treadle.protocol.permissions import Mode

AS_SET = "as set"
"""The thinking level that is that of the settings."""

_MOST_MODELS = 200
_LONGEST_ABOUT = 200
_CHOSEN_ELSEWHERE = frozenset({"mode", "plan", "act", "model", "effort", "rewind", "fork", "rename"})
"""Commands that are not offered: the client has its own way to do it, or would show something else than is true."""


class Offers:
    """What there is to choose from in a session."""

    def __init__(self, live: SessionAccess, settings: Settings) -> None:
        self._live = live
        self._modes = tuple(mode for mode in Mode if _possible(mode, settings))
        self._models: Sequence[OfferedModel] = ()

    async def look(self) -> None:
        """Find the models that can be called; raises `ConfigError`."""
        models = await asyncio.to_thread(self._live.offered_models)
        self._models = [model for model in models if model.usable][:_MOST_MODELS]

    def modes(self) -> SessionModes:
        """Give the modes."""
        rows = (SessionMode(id=mode, name=mode.capitalize(), description=mode_sentence(mode)) for mode in self._modes)
        return SessionModes(current_mode_id=self._live.status.mode, available_modes=tuple(rows))

    def options(self) -> tuple[SelectOption, ...]:
        """Give the options with their values."""
        modes = tuple(
            SelectValue(value=mode, name=mode.capitalize(), description=mode_sentence(mode)) for mode in self._modes
        )
        status = self._live.status
        options = [
            SelectOption(
                id="mode",
                name="Mode",
                description="How much runs without asking",
                category="mode",
                type="select",
                current_value=status.mode,
                options=modes,
            ),
            SelectOption(
                id="model",
                name="Model",
                category="model",
                type="select",
                current_value=status.model,
                options=tuple(self._values(status.model)),
            ),
        ]
        return (*options, *self._thinking(status.model))

    def answer(self, session_id: str | None = None) -> OpenAnswer:
        """Give what is said of a session that was opened."""
        return OpenAnswer(session_id=session_id, modes=self.modes(), config_options=self.options())

    def _values(self, current: str) -> Iterator[SelectValue]:
        if not any(model.ref == current for model in self._models):
            yield SelectValue(value=current, name=printable(current))
        for model in self._models:
            yield SelectValue(
                value=model.ref, name=printable(model.ref.partition("/")[2]), description=model.title or None
            )

    def _thinking(self, current: str) -> Iterator[SelectOption]:
        found = next((model for model in self._models if model.ref == current), None)
        if found is not None and not found.thinks:
            return
        budget = self._live.status.thinking
        level = next((name for name, tokens in EFFORT_BUDGETS.items() if tokens == budget), AS_SET)
        values = (*EFFORT_BUDGETS, AS_SET)
        yield SelectOption(
            id="thought_level",
            name="Thinking",
            description="How much the model thinks",
            category="thought_level",
            type="select",
            current_value=level,
            options=tuple(SelectValue(value=name, name=name.capitalize()) for name in values),
        )


def _possible(mode: Mode, settings: Settings) -> bool:
    try:
        require_sandbox(mode, settings)
    except ConfigError:
        return False
    return True


def command_rows(named: Sequence[NamedText]) -> tuple[dict[str, object], ...]:
    """List the commands that a client can offer: those of the table that work there, files and skills."""
    table = (row for row in SLASH_TABLE if _works(row) and row.name not in _CHOSEN_ELSEWHERE)
    rows = [_command(row.name, row.about, row.arguments) for row in table]
    rows += [
        _command(one.name, one.about, one.hint) for one in named if not one.unused and one.name not in WRITTEN_HERE
    ]
    return tuple(rows)


def _works(row: SlashCommand) -> bool:
    return Surfaces.HEADLESS in row.where


def _command(name: str, about: str, hint: str) -> dict[str, object]:
    shown = {"name": name, "description": clip_text(printable(about), _LONGEST_ABOUT)}
    return {**shown, "input": {"hint": printable(hint)}} if hint else dict(shown)

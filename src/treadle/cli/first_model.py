"""The first minutes on a terminal: a person without a model adds a key, takes a model of this machine, or the demo."""

import asyncio
import sys
from collections.abc import Sequence
from enum import Enum

from treadle.cli.add_key import add_key
from treadle.door.known_models import Models, check_setting, local_servers, models_of_provider
from treadle.door.program import Exit
from treadle.door.settings import Settings, load_settings, set_value
from treadle.present.words import tokens
from treadle.protocol.errors import ConfigError
from treadle.protocol.models import ModelSpec
from treadle.providers.local import LocalServer
from treadle.providers.local_advice import window_problem
from treadle.providers.provider_rows import ProviderRow
from treadle.tui.before.ask_choice import choose
from treadle.tui.before.inline import leave_line
from treadle.tui.ending import Left
from treadle.tui.lists.choice_list import Choosing, ListRow
from treadle.tui.paint.lines import line
from treadle.tui.paint.look import Look
from treadle.tui.session.greeting import short_path

_TITLE = "No model is configured yet. How do you want to start?"
_LOOK_AGAIN = 2.0
"""Seconds between two looks for servers on this machine."""
_LATER = "Later: `treadle login PROVIDER` stores a key, and `treadle demo` needs none."


class _Way(Enum):
    """How a person without a model begins."""

    KEY = "Add an API key"
    LOCAL = "Use a model on this machine"
    DEMO = "Try the demo, no key needed"


def first_model(settings: Settings, look: Look) -> str:
    """Let the person get a model; gives its name, empty for the demo. Who quits ends the program."""
    ref = asyncio.run(_Beginning(settings, look).run())
    if isinstance(ref, Left):
        raise SystemExit(ref.code)
    if ref:
        _keep(ref, look)
    return ref


class _Beginning:
    """The lists, one after the other; Esc goes back to the one before."""

    def __init__(self, settings: Settings, look: Look) -> None:
        self._settings = settings
        self._models = Models(settings)
        self._look = look
        self._servers: Sequence[LocalServer] = ()

    async def run(self) -> str | Left:
        """Give the model that was chosen, empty for the demo."""
        while True:
            way = await self._way()
            match way:
                case Left():
                    return way
                case _Way.DEMO:
                    return ""
                case _Way.KEY if (ref := await self._with_key()) is not None:
                    return ref
                case _Way.LOCAL if (ref := await self._on_this_machine()) is not None:
                    return ref
                case _:
                    pass

    async def _way(self) -> _Way | Left:
        """Ask for the way; meanwhile it looks for a server on this machine, which the person may start only now."""
        chosen = await choose(self._ways(), self._look, None if self._servers else self._find())
        if isinstance(chosen, Left):
            return chosen
        if chosen.row is None:
            sys.stdout.write(f"{_LATER}\n")
            return Left(Exit.CONFIG)
        return next(way for way in _Way if chosen.label.startswith(way.value))

    async def _find(self) -> Choosing:
        while True:
            self._servers = [server for server in await local_servers(self._models) if server.models]
            if self._servers or self._look.plain:  # a list that is read out is read once
                return self._ways()
            await asyncio.sleep(_LOOK_AGAIN)

    def _ways(self) -> Choosing:
        names = ", ".join(self._models.row(server.provider).title for server in self._servers)
        local = [ListRow(f"{_Way.LOCAL.value} ({names} found)")] if names else []
        rows = (ListRow(_Way.KEY.value), *local, ListRow(_Way.DEMO.value))
        return Choosing(title=_TITLE, rows=rows, escape=None, leaving="quit")

    async def _with_key(self) -> str | Left | None:
        row = await add_key(self._settings, self._look)
        return row if row is None or isinstance(row, Left) else await self._of_provider(row)

    async def _of_provider(self, row: ProviderRow) -> str | Left:
        """Ask which of a provider's models; Esc takes the first, which is the usual one."""
        usual = self._models.usual_model(row)
        specs = list(models_of_provider(row))
        specs.sort(key=lambda spec: spec.ref != usual)
        rows = tuple(ListRow(spec.name, _facts(spec)) for spec in specs)
        title = f"Which model of {row.title}?"
        chosen = await choose(Choosing(title=title, rows=rows, leaving="the first", filters=True), self._look)
        return chosen if isinstance(chosen, Left) else specs[chosen.row or 0].ref

    async def _on_this_machine(self) -> str | Left | None:
        """Ask which model of the servers that were found, those with room to work first."""
        found = [(server.provider, model) for server in self._servers for model in server.models]
        found.sort(key=lambda pair: bool(window_problem(*pair)))
        refs = [f"{provider}/{model.name}" for provider, model in found]
        if len(refs) == 1:
            return refs[0]
        rows = tuple(ListRow(ref, window_problem(*pair)) for ref, pair in zip(refs, found, strict=True))
        choosing = Choosing(title="Which model on this machine?", rows=rows, escape=None, filters=True)
        chosen = await choose(choosing, self._look)
        if isinstance(chosen, Left):
            return chosen
        return None if chosen.row is None else refs[chosen.row]


def _facts(spec: ModelSpec) -> str:
    """Say what is known of a model in a few words."""
    facts = [f"{tokens(spec.context_window)} context"] if spec.context_window else []
    if spec.prices is not None:
        facts.append(f"${spec.prices.input:.2f} in, ${spec.prices.output:.2f} out per million")
    return " · ".join(facts)


def _keep(ref: str, look: Look) -> None:
    """Save the model if the next start would take another one."""
    signs = look.theme.signs
    try:
        if Models(load_settings({})).choose().spec.ref == ref:
            return
    except ConfigError:
        pass
    try:
        saved = set_value("model", ref, check_setting)
    except (ConfigError, OSError) as error:
        leave_line(look, line(("warn", f"{signs.failed} The model is not saved for the next start: {error}")))
        return
    leave_line(look, line(("add", signs.ok), ("dim", f" Model {ref}, saved in {short_path(str(saved.file))}")))

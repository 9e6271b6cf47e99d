"""The slash commands that read files or run programs. Each is to be done in a thread."""

import asyncio
import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import msgspec

from treadle.app.compose import session_log
from treadle.app.config.edit import set_value
from treadle.app.config.layers import load_settings, read_layers
from treadle.app.config.places import config_file
from treadle.app.config.sections import Colours
from treadle.app.history.keeping_sessions import find_session, rename_session
from treadle.app.history.session_export import export_session, write_export
from treadle.app.models.saving_model import check_setting
from treadle.app.reports.agent_list import agents_text
from treadle.app.reports.context_report import context_lines, context_report, context_use, model_prices, sent_request
from treadle.app.reports.copy_list import copies_command
from treadle.app.reports.doctor_report import examine
from treadle.app.reports.hook_list import NO_HOOKS, hook_text, list_hooks
from treadle.app.reports.job_list import list_jobs
from treadle.app.reports.known_sessions import ListedSession, listed_in
from treadle.app.reports.left_report import left_lines, left_notes, left_report
from treadle.app.reports.memory_list import MEMORY_USAGE, forget, memory_text, opened_memory, remember_text, save_edited
from treadle.app.reports.origins import setting_lines
from treadle.app.reports.rule_list import rules_command, skills_text
from treadle.app.reports.usage_report import usage_text
from treadle.app.reports.usage_sums import UsageReader
from treadle.app.security.policy_show import policy_lines, read_policy
from treadle.app.session.mentions.git_mentions import Repository
from treadle.app.session.own_commands.command_answers import CommandAnswer, Handler, TextToEdit, wrong
from treadle.app.session.rules.memory_files import MemoryOf
from treadle.app.session.shared.access import SessionAccess
from treadle.app.session.shared.remote_servers import NO_SERVERS
from treadle.app.slash.copying import copy
from treadle.app.slash.further_folders import add_dir
from treadle.app.slash.going_back import fork, rewind, undo
from treadle.app.slash.reviewing_changes import review_command
from treadle.app.slash.slash_answers import QUICK, status_rows
from treadle.present.words import counted
from treadle.protocol.errors import ToolError
from treadle.workspace.files.text import visible

_MOST_SHOWN = 60_000
_DIFF = "\ndiff --git "


def _diff(session: SessionAccess, argument: str) -> CommandAnswer:  # noqa: ARG001 - takes no argument
    if not session.trust.trusted:
        return wrong("git does not run in a folder that you do not trust. /trust says how to trust it.")
    try:
        # The person who asks may read all of it.
        found = Repository(root=str(session.workspace), why_not=lambda _: "").changes(_MOST_SHOWN, renames=True)
    except ToolError as error:
        return wrong(f"{error.text[:1].upper()}{error.text[1:]}")
    listed, begin, rest = found.partition(_DIFF)
    if not begin or len(found.encode()) >= _MOST_SHOWN:  # what is cut in its middle is no diff any more
        return CommandAnswer(text=found)
    diff = f"{begin.lstrip()}{rest}"
    # The diff says how many lines of a file changed.
    others = "\n".join(row for row in listed.split("\n") if row.startswith("new: ") or not row.endswith(")"))
    return CommandAnswer(text=f"{others.strip()}\n\n{diff}".lstrip(), diff=diff)


def _context(session: SessionAccess, argument: str) -> CommandAnswer:
    with session_log(session.id) as (row, store):
        events = list(store.read(row.id, whole=False))
    if argument == "left":
        return CommandAnswer(text=visible("\n".join(left_lines(left_report(events)))))
    sent = sent_request(events)
    report = context_report(sent, model_prices(sent.model))
    lines = [*context_lines(report, sent.model), *left_notes(events, "/context left")]
    use = context_use(report, session.status.window)
    return CommandAnswer(text=visible("\n".join(lines)), context=use)


def _status(session: SessionAccess, argument: str) -> CommandAnswer:  # noqa: ARG001
    found = _as_listed(session)
    rows = [
        *status_rows(session),
        f"cost     {found.spending.words if found.steps else 'nothing yet'}",
        f"changed  {f'+{found.added} -{found.removed} lines' if found.added or found.removed else 'no lines'}",
    ]
    return CommandAnswer(text="\n".join(rows))


def _as_listed(session: SessionAccess) -> ListedSession:
    """Give the figures of a session from its log, as the list of sessions has them."""
    with session_log(session.id) as (row, store):
        (found,) = listed_in(store, [row])
        return found


def _cost(session: SessionAccess, argument: str) -> CommandAnswer:  # noqa: ARG001
    found = _as_listed(session)
    if not found.steps:
        return CommandAnswer(text="Nothing was spent in this session yet.")
    reader = UsageReader()
    with session_log(session.id) as (row, store):
        # What left the conversation is paid, and so is what subagents do.
        for one in (row.id, *(child.id for child in store.sessions(subagents=True) if child.root == row.id)):
            for event in store.read(one):
                reader.take(event)
    called = " and ".join(reader.logged().models) or found.model
    return CommandAnswer(text=f"This session so far: {found.spending.words}, {counted(found.steps, 'step')}, {called}.")


def _usage(session: SessionAccess, argument: str) -> CommandAnswer:  # noqa: ARG001
    return CommandAnswer(text=usage_text(argument))


def _jobs(session: SessionAccess, argument: str) -> CommandAnswer:  # noqa: ARG001
    lines = list_jobs(now=int(time.time() * 1000), every=False)
    if not lines:
        return CommandAnswer(text="No command runs in the background.")
    rows = [
        f"{one.id}  {one.state}  {visible(one.command.replace(chr(10), ' '))}"
        f"{f'  [wakes the agent on: {visible(one.wakes_on)}]' if one.wakes_on else ''}"
        for one in lines
    ]
    hint = "`treadle jobs output ID` shows the output of one, `treadle jobs kill ID` stops it."
    return CommandAnswer(text="\n".join([*rows, hint]))


def _mcp(session: SessionAccess, argument: str) -> CommandAnswer:
    answer = NO_SERVERS if session.servers is None else session.servers.command(argument)
    return CommandAnswer(text=answer.text, warning=answer.warning)


def _ports(session: SessionAccess, argument: str) -> CommandAnswer:
    answer = session.ports().command(argument)
    return CommandAnswer(text=answer.text, warning=answer.warning)


def _permissions(session: SessionAccess, argument: str) -> CommandAnswer:  # noqa: ARG001
    policy = read_policy(session.workspace, trusted=session.trust.trusted)
    allowed = QUICK["approvals"](session, "").text
    return CommandAnswer(text="\n".join([f"mode: {session.status.mode}", allowed, *policy_lines(policy)]))


def _config(session: SessionAccess, argument: str) -> CommandAnswer:  # noqa: ARG001
    layers = read_layers({}, workspace=session.workspace, trusted=session.trust.trusted)
    rows = [
        visible(f"{line.key} = {msgspec.json.encode(line.value).decode()}  ({line.origin})")
        for line in setting_lines(layers)
    ]
    return CommandAnswer(text="\n".join([*rows, f"Your own file: {config_file()}"]))


def _theme(session: SessionAccess, argument: str) -> CommandAnswer:  # noqa: ARG001
    names = ", ".join(Colours)
    if not argument:
        return CommandAnswer(text=f"theme = {load_settings({}).theme}. /theme NAME chooses another one: {names}.")
    if argument not in list(Colours):
        return wrong(f"/theme needs one of {names}.")
    saved = set_value("theme", argument, check_setting)
    return CommandAnswer(text=f"theme = {argument}. Saved in {saved.file}.", colours=Colours(argument))


def _hooks(session: SessionAccess, argument: str) -> CommandAnswer:  # noqa: ARG001
    trust = session.trust
    lines = list_hooks(load_settings({}, workspace=trust.workspace, trusted=trust.trusted), trust)
    return CommandAnswer(text=visible("\n".join(map(hook_text, lines))) or NO_HOOKS)


def _doctor(session: SessionAccess, argument: str) -> CommandAnswer:  # noqa: ARG001
    async def checks() -> list[str]:
        found = [check async for check in examine(offline=True)]
        return [f"{one.status:<4}  {one.name}: {one.found}{f' Fix: {one.fix}' if one.fix else ''}" for one in found]

    return CommandAnswer(text="\n".join(map(visible, asyncio.run(checks()))))


def _rename(session: SessionAccess, argument: str) -> CommandAnswer:
    if not argument.strip():
        return wrong("/rename needs a name: /rename NAME")
    if not find_session(session.id).title:
        return wrong("This session has no message yet, so it is not kept. Rename it after the first one.")
    row = rename_session(session.id, argument)
    return CommandAnswer(text=f"This session is called: {visible(row.title)}")


def _memory(session: SessionAccess, argument: str) -> CommandAnswer:
    word, _, rest = argument.strip().partition(" ")
    first, _, more = rest.strip().partition(" ")
    whose, said = (MemoryOf.USER, more) if first == MemoryOf.USER else (MemoryOf.PROJECT, rest)
    match word:
        case "":
            return CommandAnswer(text=memory_text(session.trust))
        case "add":
            return CommandAnswer(text=remember_text(whose, session.trust, said))
        case "forget" if first.isdecimal() and not more:
            return CommandAnswer(text=forget(session.trust, int(first)))
        case "edit" if not said.strip():
            opened = opened_memory(whose, session.trust)
            user = " --user" if whose is MemoryOf.USER else ""
            return CommandAnswer(
                text=f"Your editor does not open here. In a terminal: treadle memory edit{user}",
                warning=True,
                edit=TextToEdit(
                    text=opened.text or "", suffix=".md", save=lambda text: save_edited(opened, session.trust, text)
                ),
            )
        case _:
            return wrong(MEMORY_USAGE)


_FORMATS = ("md", "html", "json")


def _export(session: SessionAccess, argument: str) -> CommandAnswer:
    if not find_session(session.id).title:
        return wrong("This session has no message yet. Export it after the first one.")
    first, _, rest = argument.strip().partition(" ")
    form, path = (first, rest.strip()) if first in _FORMATS else ("", argument.strip())
    if path and not form and "." not in path and "/" not in path:
        return wrong(f"{path!r} is no format: {', '.join(_FORMATS)}. For a file of that name: /export md {path}")
    ending = Path(path).suffix.lstrip(".")
    form = form or (ending if ending in _FORMATS else "md")
    file = session.workspace / Path(path or f"treadle-{session.id}.{form}").expanduser()
    if file.is_dir():
        file /= f"treadle-{session.id}.{form}"
    if file.exists():
        return wrong(f"{visible(str(file))} exists already. Name another file: /export {form} PATH")
    write_export(file, export_session(session.id, form))
    return CommandAnswer(text=f"The session is in {visible(str(file))}")


REPORTS: Mapping[str, Handler] = MappingProxyType(
    {
        "copy": copy,
        "diff": _diff,
        "context": _context,
        "cost": _cost,
        "status": _status,
        "usage": _usage,
        "jobs": _jobs,
        "mcp": _mcp,
        "ports": _ports,
        "permissions": _permissions,
        "config": _config,
        "doctor": _doctor,
        "hooks": _hooks,
        "agents": lambda session, _: CommandAnswer(text=agents_text(session.trust, session.id, session.agents)),
        "copies": lambda session, argument: CommandAnswer(text=copies_command(session.workspace, argument)),
        "theme": _theme,
        "undo": undo,
        "rewind": rewind,
        "fork": fork,
        "rules": lambda session, argument: CommandAnswer(text=rules_command(session.trust, argument)),
        "memory": _memory,
        "rename": _rename,
        "export": _export,
        "add-dir": add_dir,
        "review": review_command,
        "skills": lambda session, _: CommandAnswer(text=skills_text(session.trust)),
    }
)
"""What does each of them."""

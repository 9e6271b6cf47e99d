"""One task done several times side by side, each in a copy of the folder: what came of each, to take one."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

from treadle.door.opening import check_workspace
from treadle.door.program import harmless
from treadle.protocol.errors import ConfigError, TreadleError

if TYPE_CHECKING:
    import argparse

_MOST = 8
_WITH_VALUE = frozenset({"-p", "--print", "-w", "--copy", "--variants", "--output-format", "--check"})
"""What each variant is given otherwise, or not at all."""


def run_variants(arguments: "argparse.Namespace") -> int:
    """Do the task in each copy and compare; 1 where none is done, 128 and its number after a signal.

    Raises `ConfigError`.
    """
    from treadle.cli.command_line import task_from
    from treadle.door.history import found_copies
    from treadle.door.program import Exit

    others = (arguments.resume, arguments.go_on, arguments.goal, arguments.attach, arguments.bg is not None)
    if arguments.print_task is None or not arguments.copy or any(others):
        raise ConfigError(
            "variants-use",
            "--variants needs a task and a name, and begins new sessions.",
            fix="treadle -p TASK -w NAME --variants 3, or with models: --variants PROVIDER/A,PROVIDER/B",
        )
    models = _models(arguments.variants)
    arguments.directory = check_workspace(arguments.directory)
    task = task_from(arguments.print_task, arguments)
    words = [*_left_of(sys.argv[1:]), "--output-format", "json", f"--print={task}"]
    wanted = [(f"{arguments.copy}-{number}", model) for number, model in enumerate(models, start=1)]
    there = {one.child_id for one in found_copies()}
    if taken := [name for name, _ in wanted if name in there]:
        raise ConfigError(
            "variants-use",
            f"There is a copy {taken[0]} already.",
            why="What was changed in it before would be compared, too.",
            fix=f"Choose another name, or remove it: treadle copies discard {taken[0]}",
        )
    _require_models(arguments, models)
    found, stopped = asyncio.run(_together(wanted, words, arguments.check))
    if arguments.output_format != "text":
        sys.stdout.writelines(f"{json.dumps(one)}\n" for one in found)
    else:
        _write(found)
    if stopped:
        return 128 + stopped
    return Exit.DONE if any(one["exit_code"] == 0 for one in found) else Exit.FAILED


def _models(said: str) -> Sequence[str]:
    """Give the model of each variant, empty for that of the settings."""
    names = [one.strip() for one in said.split(",")]
    models = [""] * min(int(said), _MOST + 1) if said.isdecimal() and len(said) < 4 else names
    if not 2 <= len(models) <= _MOST or (models is names and not all("/" in one for one in names)):
        fix = f"Give a number from 2 to {_MOST}, or as many models: PROVIDER/A,PROVIDER/B"
        raise ConfigError("variants-use", f"--variants cannot be {said!r}.", fix=fix)
    return models


def _require_models(arguments: "argparse.Namespace", models: Sequence[str]) -> None:
    """Raise `ConfigError` for a model that cannot be called, before any variant begins."""
    from treadle.cli.command_line import flags
    from treadle.door.known_models import Models
    from treadle.door.settings import load_settings
    from treadle.door.trust import session_trust

    trust = session_trust(arguments.directory)
    for model in models:
        given = {**flags(arguments), **({"model": model} if model else {})}
        Models(load_settings(given, workspace=arguments.directory, trusted=trust.trusted)).choose()


def _left_of(words: Sequence[str]) -> list[str]:
    """Give the words of the command line without those that each variant has otherwise."""
    kept: list[str] = []
    rest = iter(words)
    for word in rest:
        if word in _WITH_VALUE:
            next(rest, None)
        elif word.partition("=")[0] not in _WITH_VALUE:
            kept.append(word)
    return kept


async def _together(
    wanted: Sequence[tuple[str, str]], words: Sequence[str], check: str | None
) -> tuple[list[dict[str, Any]], int]:
    """Give what came of each, and the signal that stopped them, if one did."""
    with _Programs() as programs:
        rows = await asyncio.gather(*(_variant(programs, one, words, check) for one in wanted))
    return rows, programs.stopped


async def _variant(
    programs: "_Programs", wanted: tuple[str, str], words: Sequence[str], check: str | None
) -> dict[str, Any]:
    from treadle.door.history import named_copy, planned_copy

    name, model = wanted
    code, out, err = await programs.run([*words, "-w", name, *(("--model", model) if model else ())])
    try:
        result: Mapping[str, Any] = json.loads(out.splitlines()[-1])
    except (ValueError, IndexError):
        result = {}
    row: dict[str, Any] = {"name": name, "model": model, "exit_code": code}
    row |= {field: result.get(field) for field in ("session_id", "stop", "cost", "steps", "text")}
    if not result:
        _, said, problem = err.strip().rpartition("treadle: ")
        return {**row, "problem": problem if said else ""}
    try:
        copy = named_copy(name)
        merged = (await asyncio.to_thread(planned_copy, copy)).would.merged
    except TreadleError as error:  # the others are told nevertheless
        return {**row, "problem": error.what}
    row |= {"files": len(merged), "added": sum(one.added for one in merged)}
    row |= {"removed": sum(one.removed for one in merged)}
    if check and not programs.stopped:
        # In a throw-away copy of the copy, in the sandbox: what the model wrote runs there.
        row["check"], _, _ = await programs.run(["try", "-C", str(copy.folder), "--", check])
    return row


class _Programs:
    """The programs that run now. A signal interrupts each, so that each comes to its own end and prints what it did."""

    def __init__(self) -> None:
        self.stopped = 0
        self._running: set[asyncio.subprocess.Process] = set()
        hangup = () if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else (signal.SIGHUP,)  # nohup ignores it
        self._numbers = (signal.SIGINT, signal.SIGTERM, *hangup)

    def __enter__(self) -> Self:
        for number in self._numbers:
            asyncio.get_running_loop().add_signal_handler(number, self._stop, number)
        return self

    def __exit__(self, *_: object) -> None:
        for number in self._numbers:
            asyncio.get_running_loop().remove_signal_handler(number)

    def _stop(self, number: signal.Signals) -> None:
        self.stopped = number
        for one in self._running:
            if one.returncode is None:
                _interrupt(one)

    async def run(self, words: Sequence[str]) -> tuple[int, str, str]:
        """Run Treadle with these words; gives its exit code and what it wrote.

        It is interrupted where this process is killed: nobody would take what it does, and it would spend on.
        """
        from treadle.door.program import tethered

        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *tethered((sys.executable, "-m", "treadle", *words), signal.SIGTERM),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=pipe,
            stderr=pipe,
            start_new_session=True,
        )
        self._running.add(process)
        if self.stopped:
            _interrupt(process)
        out, err = await process.communicate()
        self._running.discard(process)
        return process.returncode or 0, out.decode(errors="replace"), err.decode(errors="replace")


def _write(found: Sequence[Mapping[str, Any]]) -> None:
    from treadle.present.words import counted

    for one in found:
        facts = [one["stop"] or one.get("problem") or f"exit status {one['exit_code']}"]
        if one["stop"]:
            cost = "unknown cost" if one["cost"] is None else f"${one['cost']:.4f}"
            facts.append(cost)
        if "files" in one:
            facts += [counted(one["files"], "file"), f"+{one['added']} -{one['removed']}"]
        elif one["stop"]:
            facts.append(one["problem"])
        if "check" in one:
            facts.append("check passed" if one["check"] == 0 else f"check failed with {one['check']}")
        name = f"{one['name']} ({one['model']})" if one["model"] else one["name"]
        sys.stdout.write(f"{harmless(name)}: {', '.join(facts)}\n")
    if any("files" in one for one in found):
        sys.stdout.write("To see one: treadle copies show NAME. To take it: treadle copies apply NAME\n")
    sys.stdout.flush()


def _interrupt(process: asyncio.subprocess.Process) -> None:
    with suppress(ProcessLookupError):
        os.kill(process.pid, signal.SIGINT)

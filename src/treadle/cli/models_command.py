"""List the models that can be used now, or all that are known offline, or those of the servers on this machine."""

import argparse
import asyncio
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from treadle.protocol.codec import encode
from treadle.protocol.models import ModelSpec

if TYPE_CHECKING:
    from treadle.door.known_models import LocalLine, Models

_ON_TERMINAL = 40
"""Lines that are shown on a terminal unless all are asked for."""
_HEAD = ("", "model", "window", "output", "$ in", "$ out", "can")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("query", nargs="*", help="words of the name, such as: anthropic sonnet")
    parser.add_argument("--all", action="store_true", help="include the models of providers without a key")
    parser.add_argument("--local", action="store_true", help="list the servers on this machine instead")
    parser.add_argument(
        "--update",
        nargs="?",
        const="",
        metavar="URL",
        help="fetch the newest public list of models, or that at an address, and say what changed",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object a line; all models, usable ones first")


def execute(arguments: argparse.Namespace) -> int:
    """Print the list; 1 where nothing was found."""
    from treadle.door.known_models import Models
    from treadle.door.settings import load_settings

    if arguments.update is not None:
        return _update(arguments.update, as_json=arguments.json)
    models = Models(load_settings({}))
    if arguments.local:
        return _show_local(models, as_json=arguments.json)
    return _show_catalogue(models, " ".join(arguments.query), everything=arguments.all, as_json=arguments.json)


def _show_catalogue(models: "Models", query: str, *, everything: bool, as_json: bool) -> int:
    from treadle.door.known_models import catalogue_models, replacement, usable_models, usable_providers

    found = catalogue_models(models, query)
    if as_json:
        sys.stdout.writelines(f"{encode(spec).decode()}\n" for spec in found)
        return 0 if found else 1
    usable = usable_providers(models)
    listed = found if everything or query else usable_models(models)
    most = _ON_TERMINAL if sys.stdout.isatty() and not everything else len(listed)
    rows = [
        (_sign(spec, usable), *_facts(spec, replacement(models, spec) if spec.retires else ""))
        for spec in listed[:most]
    ]
    if rows:
        sys.stdout.writelines(f"{line}\n" for line in _columns([_HEAD, *rows]))
    sys.stderr.writelines(f"{line}\n" for line in _notes(query, len(listed), len(rows), len(found)))
    return 0 if listed else 1


def _notes(query: str, listed: int, shown: int, found: int) -> Iterator[str]:
    """Say what the list is, and how to see the rest of it."""
    from treadle.door.known_models import data_words
    from treadle.present.words import counted

    if shown < listed:
        yield f"{shown} of {counted(listed, 'model')} are shown. Add words of the name, or --all."
    if not found:
        yield f"No known model matches {query!r}. `treadle models --all` lists them."
    elif not listed:
        yield "No provider has a key yet: `treadle login PROVIDER` stores one."
    if found > listed:
        more = f"{counted(found - listed, 'model')} of other providers, or retired: treadle models --all."
        yield f"{more} On this machine: --local."
    if listed:
        yield f"* can be used now. {data_words()} Prices are US dollars for a million tokens."
        yield "Newer lists: treadle models --update."


def _sign(spec: ModelSpec, usable: frozenset[str]) -> str:
    from treadle.door.known_models import is_over

    return "*" if spec.provider in usable and not is_over(spec) else ""


def _facts(spec: ModelSpec, successor: str) -> Iterator[str]:
    from treadle.door.known_models import is_over

    yield spec.ref
    yield _number(spec.context_window)
    yield _number(spec.max_output)
    yield "?" if spec.prices is None else f"{spec.prices.input:g}"
    yield "?" if spec.prices is None else f"{spec.prices.output:g}"
    can = {"tools": spec.native_tools, "images": spec.images, "thinking": spec.thinking, "documents": spec.documents}
    steps = () if spec.prices is None else spec.prices.steps
    long = [f"above {step.above:,} tokens: {step.input:g} in, {step.output:g} out" for step in steps]
    end = f"{'retired' if is_over(spec) else 'ends'} {spec.retires}" if spec.retires else ""
    ends = [f"{end}, use {successor}" if successor else end] if end else []
    yield "; ".join([*ends, " ".join(name for name, there in can.items() if there) or "text only", *long])


def _update(url: str, *, as_json: bool) -> int:
    """Fetch the public list, and say what it changed: whole with JSON, else what a person looks for first."""
    from treadle.door.known_models import data_words, update_models
    from treadle.present.words import counted

    changes = asyncio.run(update_models(url))
    if as_json:
        sys.stdout.writelines(f"{encode(change).decode()}\n" for change in changes)
        return 0
    shown = changes if not sys.stdout.isatty() else changes[:_ON_TERMINAL]
    sys.stdout.writelines(f"{change.ref} {change.text}\n" for change in shown)
    if len(shown) < len(changes):
        sys.stderr.write(f"{counted(len(changes) - len(shown), 'more change')}: treadle models --update --json\n")
    sys.stderr.write(f"{counted(len(changes), 'change')}. {data_words()}\n")
    return 0


def _number(value: int | None) -> str:
    return "?" if value is None else f"{value:,}"


def _columns(rows: Sequence[Sequence[str]]) -> Iterable[str]:
    """Align the columns: numbers to the right, words to the left."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [
            cell.rjust(width) if title in _HEAD[2:6] else cell.ljust(width)
            for cell, width, title in zip(row, widths, _HEAD, strict=True)
        ]
        yield "  ".join(cells).rstrip()


def _show_local(models: "Models", *, as_json: bool) -> int:
    from treadle.door.known_models import local_lines, local_servers

    lines = list(local_lines(asyncio.run(local_servers(models))))
    for line in lines:
        sys.stdout.write(f"{encode(line).decode()}\n" if as_json else f"{_line_text(line)}\n")
    if not lines and not as_json:
        sys.stderr.write("No server was found: Ollama, LM Studio, llama.cpp and vLLM at their usual ports.\n")
    return 0 if lines else 1


def _line_text(line: "LocalLine") -> str:
    window = "window unknown" if line.window is None else f"window {line.window:,}"
    largest = "" if line.largest is None else f" of {line.largest:,}"
    problem = f"\n  {line.problem}\n  fix: {line.fix}" if line.problem else ""
    return f"{line.ref}, {window}{largest}, {'loaded' if line.loaded else 'not loaded'}, {line.base_url}{problem}"

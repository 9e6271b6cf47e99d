"""List the models that are known offline, or those of the servers on this machine."""

import argparse
import asyncio
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from treadle.protocol.codec import encode
from treadle.protocol.models import ModelSpec

if TYPE_CHECKING:
    from treadle.app.models.choosing import Models
    from treadle.app.models.listing import LocalLine


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("query", nargs="*", help="words of the name, such as: anthropic sonnet")
    parser.add_argument("--local", action="store_true", help="ask the servers on this machine instead")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")


def execute(arguments: argparse.Namespace) -> int:
    """Print the list."""
    from treadle.app.config.settings import load_settings
    from treadle.app.models.choosing import Models

    models = Models(load_settings({}))
    if arguments.local:
        return _show_local(models, as_json=arguments.json)
    return _show_catalogue(models, " ".join(arguments.query), as_json=arguments.json)


def _show_catalogue(models: "Models", query: str, *, as_json: bool) -> int:
    from treadle.app.models.listing import catalogue_models, data_date

    found = catalogue_models(models, query)
    for spec in found:
        sys.stdout.write(f"{encode(spec).decode()}\n" if as_json else f"{', '.join(_facts(spec))}\n")
    if not as_json:
        sys.stderr.write(f"{len(found)} models; figures of {data_date()}, prices for a million tokens.\n")
    return 0 if found else 1


def _facts(spec: ModelSpec) -> Iterator[str]:
    yield spec.ref
    yield "window unknown" if spec.context_window is None else f"window {spec.context_window:,}"
    yield "output unknown" if spec.max_output is None else f"output {spec.max_output:,}"
    yield "price unknown" if spec.prices is None else f"${spec.prices.input:g} in, ${spec.prices.output:g} out"
    can = {"tools": spec.native_tools, "images": spec.images, "thinking": spec.thinking, "documents": spec.documents}
    yield " ".join(name for name, there in can.items() if there) or "text only"


def _show_local(models: "Models", *, as_json: bool) -> int:
    from treadle.app.models.listing import local_lines, local_servers

    lines = list(local_lines(asyncio.run(local_servers(models))))
    for line in lines:
        sys.stdout.write(f"{encode(line).decode()}\n" if as_json else f"{_told(line)}\n")
    if not lines and not as_json:
        sys.stderr.write("No server answered: Ollama, LM Studio, llama.cpp and vLLM were asked at their usual ports.\n")
    return 0 if lines else 1


def _told(line: "LocalLine") -> str:
    window = "window unknown" if line.window is None else f"window {line.window:,}"
    largest = "" if line.largest is None else f" of {line.largest:,}"
    problem = f"\n  {line.problem}\n  fix: {line.fix}" if line.problem else ""
    return f"{line.ref}, {window}{largest}, {'loaded' if line.loaded else 'not loaded'}, {line.base_url}{problem}"

"""The texts of the system prompt, a file for each part, and which of them a model is sent."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from treadle.protocol.models import ToolProtocol
from treadle.protocol.patterns import regex
from treadle.protocol.sealed import PromptPart

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

_FOLDER = Path(__file__).parent
_LONGEST = 65_536


class OwnTexts(Struct, frozen=True, kw_only=True):
    """What the user says of the prompt: files in `folder` in place of Treadle's, instructions, and a language."""

    folder: Path | None = None
    instructions: str = ""
    language: str = ""


def family_of(ref: str) -> str:
    """Name the family of a model by its name, `provider/model`."""
    name = ref.lower().replace(".", "-").replace("_", "-")
    found = next((family for family, marks in _MARKS if any(mark in name for mark in marks)), GENERIC)
    size = _SIZE.search(name)
    return LOCAL if found == GENERIC and size is not None and int(size[1]) <= _SMALL else found


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

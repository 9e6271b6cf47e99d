"""The system prompt: what each family is sent, in either protocol, and what the user may put in its place."""

import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.app.rehearsal import rehearse
from tests.e2e.process import Program
from treadle.app.config.sections import ModelSettings, Settings
from treadle.app.errors.exits import Exit
from treadle.app.reports.prompt_parts import shown_prompt
from treadle.app.security.trusting import session_trust
from treadle.app.session.rules.prompting import FAMILIES, OwnTexts, family_of, prompt_parts
from treadle.context.transcript import BYTES_PER_TOKEN
from treadle.protocol.models import ToolProtocol
from treadle.protocol.permissions import Mode
from treadle.protocol.sealed import system_text
from treadle.providers.model_data import built_in_models

SNAPSHOTS = Path(__file__).with_name("prompts")
MOST_WORK_TOKENS = 450
SAID_TO_EVERY_FAMILY = (
    "changes that are not yours",
    "if files change unexpectedly, stop and ask",
    "narrowest test",
    "`path:line`",
    "what you ran",
    "what failed",
    "`$tmpdir`",
    "script",
    "a denial names what is not allowed",
    "another way that is allowed",
)
CASES = [(family, protocol) for family in FAMILIES for protocol in ToolProtocol]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "ws").mkdir()
    return (tmp_path / "ws").resolve()


def own_text(folder: Path, name: str, text: str) -> Path:
    file = folder.parent / "home/prompts" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


@pytest.mark.parametrize(("family", "protocol"), CASES)
def test_the_prompt_of_each_family_and_protocol_is_as_it_was_looked_at(family: str, protocol: ToolProtocol) -> None:
    parts = prompt_parts(family, protocol, OwnTexts(language="Swahili", instructions="Use tabs."))
    shown = "".join(f"=== {part.name}\n{part.text}\n\n" for part in parts)
    file = SNAPSHOTS / f"{family}-{protocol}.txt"
    assert shown == file.read_text(), f"look at the change, then write it to {file}"


@pytest.mark.parametrize("family", FAMILIES)
def test_how_to_work_is_said_in_at_most_450_tokens_and_leaves_nothing_out(family: str) -> None:
    (work,) = [part for part in prompt_parts(family, ToolProtocol.NATIVE, OwnTexts()) if part.name == "work"]
    assert len(work.text.encode()) / BYTES_PER_TOKEN <= MOST_WORK_TOKENS
    assert {said for said in SAID_TO_EVERY_FAMILY if said not in work.text.casefold()} == set()


def test_a_strong_model_gets_little_and_a_small_one_an_example() -> None:
    sizes = {
        case: len(system_text(prompt_parts(*case, OwnTexts())))
        for case in [(family, ToolProtocol.NATIVE) for family in FAMILIES]
    }
    assert [family for family, _ in sorted(sizes, key=lambda case: sizes[case])] == ["next", "generic", "local"]
    named = {family: [part.name for part in prompt_parts(family, ToolProtocol.XML, OwnTexts())] for family in FAMILIES}
    assert named == {
        "next": ["work", "checklist", "tools"],
        "generic": ["work", "checklist", "git", "tools"],
        "local": ["work", "checklist", "git", "tools", "examples"],
    }


@pytest.mark.parametrize(
    ("ref", "family"),
    [
        ("anthropic/claude-sonnet-4-5", "next"),
        ("bedrock/eu.anthropic.claude-opus-4-6-v1", "next"),
        ("openrouter/anthropic/claude-sonnet-4.5", "next"),
        ("openai/gpt-5", "next"),
        ("openai/gpt-5-nano", "generic"),
        ("openai/gpt-4.1", "generic"),
        ("gemini/gemini-2.5-pro", "next"),
        ("gemini/gemini-2.5-flash-lite", "generic"),
        ("anthropic/claude-3-5-sonnet-20241022", "generic"),
        ("mistral/mistral-large-latest", "generic"),
        ("minimax/MiniMax-M2", "next"),
        ("ollama/qwen3-coder:30b", "local"),
        ("lmstudio/openai/gpt-oss-20b", "local"),
        ("llama.cpp/any", "local"),
        ("local/smollm2", "local"),
        ("groq/llama-3.1-8b-instant", "local"),
        ("groq/llama-3.3-70b-versatile", "generic"),
        ("anthropic-compatible/scripted", "generic"),
        ("", "generic"),
    ],
)
def test_the_family_follows_from_the_name(ref: str, family: str) -> None:
    assert family_of(ref) == family


def test_every_known_model_has_a_family_and_all_three_are_common() -> None:
    found = [
        family_of(f"{section}/{name}")
        for section in built_in_models().data.providers
        for name in built_in_models().section(section)
    ]
    assert min(found.count(family) for family in FAMILIES) > 100


@given(st.text())
def test_any_name_has_a_family(ref: str) -> None:
    assert family_of(ref) in FAMILIES


def test_a_file_of_the_user_stands_in_for_a_part_and_an_empty_one_leaves_it_out(folder: Path) -> None:
    file = own_text(folder, "work.md", "MY WORDS")
    own_text(folder, "git.md", " \n")
    own_text(folder, "tools-xml.md", "MY XML")
    own_text(folder, "nonsense.md", "never sent")
    (folder.parent / "home/prompts/checklist.md").mkdir()
    for family in FAMILIES:
        settings = Settings(
            model="anthropic-compatible/x",
            models={"anthropic-compatible/x": msgspec.convert({"family": family}, ModelSettings)},
        )
        found = shown_prompt(settings, session_trust(folder))
        work, *others = found.parts
        assert (found.family, work.name, work.text, work.origin) == (family, "work", "MY WORDS", str(file))
        assert "git" not in [part.name for part in others]
        assert {part.origin for part in others} == {""}
        assert "MY XML" not in [part.text for part in found.parts]
    (xml,) = [
        part
        for part in shown_prompt(
            Settings(model="anthropic-compatible/x", tool_protocol=ToolProtocol.XML), session_trust(folder)
        ).parts
        if part.name == "tools"
    ]
    assert xml.text == "MY XML"


def test_language_and_instructions_are_the_users_and_say_where_they_come_from(folder: Path) -> None:
    settings = Settings(model="anthropic/claude-sonnet-4-5", language="French", instructions="Never use tabs.\n")
    parts = {part.name: part for part in shown_prompt(settings, session_trust(folder)).parts}
    assert parts["language"].text.startswith("Write to the user in French, ")
    assert parts["instructions"].text.endswith("\n\nNever use tabs.")
    assert [parts[name].origin for name in ("language", "instructions")] == ["setting language", "setting instructions"]
    assert all(part.tokens > 0 for part in parts.values())


async def test_what_is_shown_is_what_is_sent(folder: Path) -> None:
    (folder / "AGENTS.md").write_text("RULE")
    for protocol in ToolProtocol:
        seen = await rehearse(folder, [], mode=Mode.ASK, present=True, tool_protocol=protocol, language="Danish")
        sent = "".join(block["text"] for block in seen.requests[0]["system"])
        settings = Settings(model="anthropic-compatible/scripted", tool_protocol=protocol, language="Danish")
        shown = shown_prompt(settings, session_trust(folder, once=True))
        described = [part for part in shown.parts if not part.name.startswith("tool ")]
        assert [part.name for part in described if part.text not in sent] == []
        assert shown.tool_protocol is protocol


async def test_prompt_show_prints_the_parts_of_a_model_without_a_key(folder: Path) -> None:
    program = Program(folder.parent / "home")
    words = ("prompt", "show", "--model", "anthropic/claude-sonnet-4-5", "-C", str(folder))
    ended = await program.run(*words, "--json")
    found = json.loads(ended.out)
    assert [part["name"] for part in found["parts"]] == ["work", "checklist", "tools"]
    assert all(set(part) == {"name", "tokens", "text", "origin"} for part in found["parts"])
    plain = await program.run(*words)
    assert plain.out.startswith("The system prompt of anthropic/claude-sonnet-4-5 (family next, native calls): about ")
    assert "--- work (about " in plain.out
    unknown = await program.run("prompt", "show", "--model", "anthropic/nonsense", "-C", str(folder))
    assert (unknown.code, "[model-unknown]" in unknown.err) == (Exit.CONFIG, True)

"""Skills: found in the usual places, named within a bound, read on use, and broken ones told kindly."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.app.reports.rule_list import skills_text
from treadle.app.security.trusting import session_trust
from treadle.app.session.rules.skills import Skill, SkillBook, find_skills
from treadle.protocol.errors import ToolError
from treadle.store.activation import ActiveFile, ActiveKind
from treadle.tools.use_subagents import SubagentTask

GOOD = "---\nname: {}\ndescription: {}\n---\nDo $ARGUMENTS with ${{CLAUDE_SKILL_DIR}}/run.sh.\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home/treadle"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "work").mkdir()
    return (tmp_path / "work").resolve()


def write(folder: Path, files: Mapping[str, str | bytes]) -> None:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())


def found(folder: Path, *, trusted: bool = True) -> dict[str, Skill]:
    return {str(one.folder): one for one in find_skills(session_trust(folder, once=trusted))}


def test_skills_are_found_in_all_places_and_those_of_the_folder_only_after_trust(folder: Path) -> None:
    home = folder.parent / "home"
    own = {f"{place}/skills/{name}/SKILL.md": GOOD.format(name, name) for place, name in
           (("treadle", "a"), (".agents", "b"), (".claude", "c"))}  # fmt: skip
    theirs = {f"{place}/skills/{name}/SKILL.md": GOOD.format(name, name) for place, name in
              ((".agents", "d"), (".treadle", "e"), (".claude", "f"))}  # fmt: skip
    write(home, own)
    write(folder, {**theirs, ".claude/skills/README.md": "no skill", ".agents/skills/d/sub/SKILL.md": "neither"})
    assert [one.name for one in found(folder, trusted=False).values()] == ["a", "b", "c"]
    assert sorted(one.name for one in found(folder).values()) == list("abcdef")
    assert [one.problem or one.unused for one in found(folder).values()] == [""] * 6


def test_of_two_with_one_name_the_users_own_is_used(folder: Path) -> None:
    write(folder, {".agents/skills/a/SKILL.md": GOOD.format("a", "theirs")})
    write(folder.parent / "home", {".claude/skills/a/SKILL.md": GOOD.format("a", "mine")})
    book = SkillBook(find_skills(session_trust(folder, once=True)))
    assert book.listing(1_000) == "- a: mine"
    assert [bool(one.unused) for one in book.all] == [False, True]


@pytest.mark.parametrize(
    ("content", "problem", "unused"),
    [
        ("---\nname: a\n---\n# Title\nText", "Its header has no description.", ""),
        ("Just text.", "Its header has no description.", ""),
        ("---\nname: a\ndescription: d\nText", "no --- at its end", ""),
        ("---\nname: Other\ndescription: d\n---\nText", "Its name 'Other' is not that of its folder", ""),
        (f"---\nname: a\ndescription: {'d' * 2_000}\n---\nText", "Only the first 1,536 characters", ""),
        ("---\nname: a\ndescription: d\n---\n", "", "It has no text."),
        (b"\0\1", "", "It is not text in UTF-8."),
        (b"---\nname: a\ndescription: caf\xe9\n---\nText", "", ""),
    ],
)
def test_a_broken_skill_is_said_and_never_fatal(folder: Path, content: str | bytes, problem: str, unused: str) -> None:
    write(folder, {".agents/skills/a/SKILL.md": content})
    (skill,) = found(folder).values()
    assert problem in skill.problem
    assert bool(problem) is bool(skill.problem)
    assert (skill.name, skill.unused) == ("a", unused)
    shown = skills_text(session_trust(folder, once=True))
    assert (problem or unused) in shown


def test_a_skill_that_is_a_pipe_a_device_or_leads_out_is_not_read(folder: Path) -> None:
    for name in ("a", "b", "c"):
        (folder / ".agents/skills" / name).mkdir(parents=True)
    os.mkfifo(folder / ".agents/skills/a/SKILL.md")
    (folder / ".agents/skills/b/SKILL.md").symlink_to("/dev/zero")
    (folder / ".agents/skills/c/SKILL.md").symlink_to("/etc/passwd")
    assert [one.unused.partition(",")[0] for one in found(folder).values()] == ["It cannot be read"] * 3


def test_use_gives_the_folder_the_body_and_the_arguments(folder: Path) -> None:
    write(
        folder, {".agents/skills/a/SKILL.md": GOOD.format("a", "d"), ".agents/skills/b/SKILL.md": "---\nx: y\n---\nB"}
    )
    write(folder, {".agents/skills/c/SKILL.md": "First $ARGUMENTS[0], then $ARGUMENTS[1]$ARGUMENTS[2]."})
    book = SkillBook(find_skills(session_trust(folder, once=True)))
    base = f"{folder}/.agents/skills"
    assert book.text("a", "it") == f"Base directory for this skill: {base}/a\n\nDo it with {base}/a/run.sh."
    assert book.text("b").endswith("\n\nB")
    assert book.text("b", "x y").endswith("\n\nB\n\nARGUMENTS: x y")
    assert book.text("/c", "'one two' three").endswith("First one two, then three.")
    with pytest.raises(ToolError, match="Use one of: a, b, c"):
        book.text("none")


def test_what_was_changed_since_the_start_is_not_read(folder: Path) -> None:
    write(folder, {".agents/skills/a/SKILL.md": GOOD.format("a", "d")})
    book = SkillBook(find_skills(session_trust(folder, once=True)))
    write(folder, {".agents/skills/a/SKILL.md": "other"})
    with pytest.raises(ToolError, match="was changed or removed"):
        book.text("a")


def test_a_skill_may_be_for_the_user_only(folder: Path) -> None:
    header = "---\nname: a\ndescription: d\ndisable-model-invocation: true\n---\nText"
    write(folder, {".agents/skills/a/SKILL.md": header})
    book = SkillBook(find_skills(session_trust(folder, once=True)))
    assert (book.for_model, book.text("a")[-4:]) == ((), "Text")
    with pytest.raises(ToolError):
        book.called("a", subagents=True, entered=lambda origin: True)


@pytest.mark.parametrize(
    ("header", "agent", "problem"),
    [
        ("context: fork", "worker", ""),
        ("context: fork\nagent: Explore\nmodel: haiku\neffort: low", "Explore", ""),
        ("context: inline", "", "Its context 'inline' is not known"),
        ("agent: Explore", "", "with `context: fork` only"),
        ("model: inherit", "", ""),
    ],
)
def test_a_skill_may_ask_for_a_subagent(folder: Path, header: str, agent: str, problem: str) -> None:
    write(folder, {".agents/skills/a/SKILL.md": f"---\nname: a\ndescription: d\n{header}\n---\nDo $ARGUMENTS."})
    (skill,) = found(folder).values()
    assert (skill.agent, problem in skill.problem, bool(problem)) == (agent, True, bool(skill.problem))
    book = SkillBook([skill])
    assert ("a subagent follows it" in book.listing(1_000)) is bool(agent)
    called = book.called("a", "it", subagents=True, entered=lambda origin: False)
    assert isinstance(called, SubagentTask if agent else str)
    if isinstance(called, SubagentTask):
        assert (called.agent, called.title, called.prompt[-6:]) == (agent, "Skill a it", "Do it.")
        assert (called.model, called.effort) == (skill.model, skill.effort)
        assert book.entered("a", 'say "it"').count(r'"say \"it\""') == 1
        assert book.called("a", "it", subagents=False, entered=lambda origin: False) == book.text("a", "it")
    assert f"(by the subagent {agent})" in skills_text(session_trust(folder, once=True)) or not agent


def test_a_skill_for_the_user_only_is_followed_by_a_subagent_once_they_entered_it(folder: Path) -> None:
    header = "---\nname: a\ndescription: d\ndisable-model-invocation: true\ncontext: fork\n---\nText"
    write(folder, {".agents/skills/a/SKILL.md": header})
    book = SkillBook(find_skills(session_trust(folder, once=True)))
    assert (book.for_model, book.callable) == ((), True)
    with pytest.raises(ToolError, match="There is no skill"):
        book.called("a", subagents=True, entered=lambda origin: False)
    assert isinstance(
        book.called("a", subagents=True, entered=lambda origin: origin == book.all[0].origin), SubagentTask
    )


def skill(name: str, description: str) -> Skill:
    return Skill(
        name=name, description=description, place=Path("/"), item=ActiveFile(f"{name}/SKILL.md", ActiveKind.SKILL, "x")
    )


@given(st.lists(st.integers(1, 1_536), max_size=60), st.integers(200, 8_000))
def test_the_list_of_skills_is_bounded_and_names_those_that_do_not_fit(lengths: list[int], most: int) -> None:
    book = SkillBook([skill(f"s{number}", "x" * length) for number, length in enumerate(lengths)])
    listing = book.listing(most)
    assert len(listing) <= 2 * most
    named = sum(f"s{number}:" in listing or f" s{number}" in listing for number in range(len(lengths)))
    assert named == len(lengths) or "more" in listing

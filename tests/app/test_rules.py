"""The rules of a folder: which there are, when each applies, and what of a hostile one never gets further."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.app.reports.rule_list import rules_command
from treadle.app.security.trusting import SessionTrust, session_trust, trust_store, whole_trust
from treadle.app.session.recall import PastRules
from treadle.app.session.rules.instructions import RuleBook, RuleSwitches
from treadle.app.session.rules.rule_files import LONGEST_RULES, PromptRule, RuleUse, find_rules, nested_rules
from treadle.context.system import Rules
from treadle.protocol.events import CallJudged, Compacted, Event, Noted, Source
from treadle.protocol.permissions import Decision, Verdict
from treadle.protocol.sealed import PassageKind, system_text
from treadle.protocol.tools import Preview, ReadPath, Risk
from treadle.store.activation import ActiveKind

CURSOR = "---\ndescription: {}\nglobs: {}\nalwaysApply: {}\n---\n{}"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "work" / ".git").mkdir(parents=True)
    return (tmp_path / "work").resolve()


def write(folder: Path, files: Mapping[str, str | bytes]) -> None:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())


def rules(folder: Path) -> dict[str, PromptRule]:
    return {rule.origin: rule for rule in find_rules(session_trust(folder, once=True))}


def text_of(rule: PromptRule) -> list[str]:
    return [block.text for block in rule.blocks]


def granted(folder: Path) -> SessionTrust:
    trust_store().grant(whole_trust(folder))
    return session_trust(folder)


def test_the_rules_of_every_tool_are_read_as_it_reads_them(folder: Path) -> None:
    write(
        folder,
        {
            "AGENTS.md": "agents",
            "GEMINI.md": "gemini",
            ".cursorrules": "cursorrules",
            ".windsurfrules": "windsurfrules",
            ".github/copilot-instructions.md": "copilot",
            ".clinerules/20-b.md": "---\npaths:\n  - 'src/*.{ts,tsx}'\n---\nb",
            ".clinerules/10-a.md": "a",
            ".clinerules/workflows/w.md": "a workflow is no rule",
            ".claude/rules/deep/c.md": "---\npaths: docs/**\n---\nc",
            ".cursor/rules/always.mdc": CURSOR.format("", "", "true", "1"),
            ".cursor/rules/globs.mdc": CURSOR.format("", "*.py,*.pyi", "false", "2"),
            ".cursor/rules/described.mdc": CURSOR.format("How to release", "", "false", "3"),
            ".cursor/rules/manual.mdc": CURSOR.format("", "", "false", "4"),
            ".windsurf/rules/on.md": "---\ntrigger: always_on\n---\non",
            ".windsurf/rules/asked.md": "---\ntrigger: model_decision\ndescription: d\n---\nasked",
            ".windsurf/rules/glob.md": "---\ntrigger: glob\nglobs: x/**\n---\nglob",
        },
    )
    found = rules(folder)
    assert [(origin, rule.use.value, rule.paths) for origin, rule in found.items()] == [
        ("AGENTS.md", "always", ()),
        ("GEMINI.md", "always", ()),
        (".claude/rules/deep/c.md", "touched", ("docs/**",)),
        (".clinerules/10-a.md", "always", ()),
        (".clinerules/20-b.md", "touched", ("src/*.ts", "src/*.tsx")),
        (".cursor/rules/always.mdc", "always", ()),
        (".cursor/rules/described.mdc", "described", ()),
        (".cursor/rules/globs.mdc", "touched", ("*.py", "*.pyi")),
        (".cursor/rules/manual.mdc", "mentioned", ()),
        (".cursorrules", "always", ()),
        (".github/copilot-instructions.md", "always", ()),
        (".windsurf/rules/asked.md", "described", ()),
        (".windsurf/rules/glob.md", "touched", ("x/**",)),
        (".windsurf/rules/on.md", "always", ()),
        (".windsurfrules", "always", ()),
    ]
    assert [rule.unused or rule.problem for rule in found.values() if rule.unused or rule.problem] == []
    assert text_of(found[".cursor/rules/always.mdc"]) == ["1"]


def test_clinerules_may_be_a_file(folder: Path) -> None:
    write(folder, {".clinerules": "one file"})
    assert [text_of(rule) for rule in rules(folder).values()] == [["one file"]]


@pytest.mark.parametrize(
    ("there", "used"),
    [
        ({"AGENTS.override.md": "o", "AGENTS.md": "a", "CLAUDE.md": "c"}, ["o", "c"]),
        ({"AGENTS.override.md": " \n", "AGENTS.md": "a", "CLAUDE.md": "c"}, ["a", "c"]),
        ({"AGENTS.md": "a", "CLAUDE.md": "c", "CLAUDE.local.md": "l"}, ["a", "c", "l"]),
        ({"AGENTS.md": "a", "CLAUDE.md": " a\n"}, ["a"]),
        ({"AGENTS.md": "a", "CLAUDE.md": "@AGENTS.md\n"}, ["a"]),
        ({"AGENTS.md": "a", "CLAUDE.md": "Read @./AGENTS.md first."}, ["a", "Read @./AGENTS.md first."]),
        ({"CLAUDE.md": "c", "CLAUDE.local.md": "l"}, ["l", "c"]),
        ({"AGENTS.md": "same", "GEMINI.md": "same"}, ["same"]),
    ],
)
def test_of_files_that_say_the_same_for_several_tools_one_is_used(
    folder: Path, there: dict[str, str], used: list[str]
) -> None:
    write(folder, there)
    found = rules(folder)
    assert sorted(text for rule in found.values() if not rule.unused for text in text_of(rule)) == sorted(used)
    assert all(rule.unused for origin, rule in found.items() if there[origin] not in used)


def test_imports_come_along_in_their_own_blocks_and_cycles_end(folder: Path) -> None:
    write(folder, {"CLAUDE.md": "c @docs/a.md", "docs/a.md": "a @../CLAUDE.md @b.md @none.md", "docs/b.md": "b @a.md"})
    (rule,) = rules(folder).values()
    assert [block.origin for block in rule.blocks] == ["CLAUDE.md", "docs/a.md", "docs/b.md"]
    assert rule.problem == ""
    (trusted,) = find_rules(granted(folder))
    assert trusted == rule
    write(folder, {"docs/b.md": "other"})
    assert session_trust(folder).trust.changed == ("docs/b.md",)


@pytest.mark.parametrize("path", [".env", "../outside.md", "link.md", "~/outside.md", "/etc/passwd", "listed.md"])
def test_an_import_of_what_is_protected_or_outside_is_refused_and_said(folder: Path, path: str) -> None:
    (folder / "link.md").symlink_to(folder.parent / "outside.md")
    write(folder, {".env": "SECRET", "listed.md": "SECRET", ".treadleignore": "listed.md\n", "CLAUDE.md": f"@{path}"})
    write(folder.parent, {"outside.md": "SECRET"})
    (rule,) = rules(folder).values()
    assert text_of(rule) == [f"@{path}"]
    assert f"{path} is protected or outside" in rule.problem


def test_the_list_of_rules_says_each_import_that_was_left_out(folder: Path) -> None:
    left = [f"../outside{number}.md" for number in range(6)]
    write(folder, {"CLAUDE.md": " ".join(f"@{path}" for path in left)})
    write(folder.parent, dict.fromkeys((path.removeprefix("../") for path in left), "SECRET"))
    trust_store().grant(session_trust(folder).trust)
    said = rules_command(session_trust(folder))
    assert [path for path in left if f"{path} is protected or outside, and not imported." not in said] == []


def test_what_is_no_text_or_too_long_is_said_and_bounded(folder: Path) -> None:
    write(folder, {"AGENTS.md": "n" * 5_000_000, ".cursorrules": b"a\0b", ".windsurfrules": b"caf\xe9"})
    write(folder, {".cursor/rules/x.mdc": "---\nglobs: [a\n---\nx", ".clinerules/y.md": "---\nnever ends"})
    os.mkfifo(folder / ".clinerules/pipe.md")
    (folder / ".clinerules/zero.md").symlink_to("/dev/zero")
    (folder / ".clinerules/passwd.md").symlink_to("/etc/passwd")
    (folder / ".clinerules/loop.md").symlink_to("loop.md")
    found = rules(folder)
    assert {origin: rule.unused for origin, rule in found.items() if rule.unused} == {
        ".cursorrules": "It is not text in UTF-8.",
        ".clinerules/pipe.md": "It cannot be read, or is not as it was when you trusted the folder.",
        ".clinerules/zero.md": "It leads out of the folder.",
        ".clinerules/passwd.md": "It leads out of the folder.",
        ".clinerules/loop.md": "It cannot be read, or is not as it was when you trusted the folder.",
    }
    assert found["AGENTS.md"].size < LONGEST_RULES + 100
    assert {origin: rule.problem for origin, rule in found.items() if rule.problem} == {
        "AGENTS.md": "Only its first 32,768 characters are used.",
        ".windsurfrules": "It is not UTF-8: what cannot be read is replaced.",
        ".cursor/rules/x.mdc": "Line 2 of its header has a value that cannot be read.",
        ".clinerules/y.md": "Its header begins with --- and has no --- at its end.",
    }


def test_all_rules_together_are_bounded(folder: Path) -> None:
    write(folder, {f".clinerules/{number:02}.md": str(number % 10) * 20_000 + str(number) for number in range(12)})
    found = list(rules(folder).values())
    assert sum(rule.size for rule in found if not rule.unused) <= 131_072
    assert [bool(rule.unused) for rule in found] == [False] * 6 + [True] * 6


def test_the_users_own_rules_need_no_trust_and_come_first(folder: Path) -> None:
    home = folder.parent / "home"
    write(home, {"AGENTS.md": "mine", "rules/python.md": "---\npaths: '*.py'\n---\npy"})
    write(folder, {"AGENTS.md": "theirs"})
    untrusted = find_rules(session_trust(folder))
    assert [(text_of(rule), rule.use) for rule in untrusted] == [
        (["mine"], RuleUse.ALWAYS),
        (["py"], RuleUse.TOUCHED),
    ]
    assert untrusted[1].applies_to(str(folder / "a/b.py"))
    assert [text_of(rule) for rule in find_rules(granted(folder))] == [["mine"], ["py"], ["theirs"]]


def test_nested_rules_are_those_that_were_trusted(folder: Path) -> None:
    write(folder, {"AGENTS.md": "top", "a/AGENTS.md": "a", "a/b/CLAUDE.md": "b @x.md", "a/b/x.md": "x"})
    write(folder, {"node_modules/m/AGENTS.md": "not of the project", ".hidden/AGENTS.md": "neither"})
    trust = granted(folder)
    assert [item.path for item in trust.trust.nested] == ["a/AGENTS.md", "a/b/CLAUDE.md", "a/b/x.md"]
    assert [text_of(rule) for rule in nested_rules(trust, folder / "a/b")] == [["b @x.md", "x"]]
    write(folder, {"a/AGENTS.md": "changed", "a/c/AGENTS.md": "new"})
    assert session_trust(folder).trusted, "the start does not look into every folder"
    assert [text_of(rule) for rule in nested_rules(trust, folder / "a")] == [[]]
    assert [text_of(rule) for rule in nested_rules(trust, folder / "a/c")] == [[]]
    assert whole_trust(folder).changed == ("a/AGENTS.md", "a/c/AGENTS.md")
    once = session_trust(folder, once=True)
    assert [text_of(rule) for rule in nested_rules(once, folder / "a")] == [["changed"]]
    assert list(nested_rules(session_trust(folder.parent), folder / "a")) == []


def test_paths_are_matched_as_ignore_files_are(folder: Path) -> None:
    def about(*paths: str) -> PromptRule:
        return PromptRule(origin="x", use=RuleUse.TOUCHED, folder=str(folder), paths=paths)

    def applies(path: str, *paths: str) -> bool:
        return about(*paths).applies_to(str(folder / path))

    assert [applies("src/a.ts", one) for one in ("*.ts", "src/**", "src/*.ts", "src/", "**/a.ts", "*", "src")] == [
        True
    ] * 7
    assert [applies("src/a.ts", one) for one in ("*.py", "/a.ts", "lib/**", "", "src/a")] == [False] * 5
    assert not about("*").applies_to(str(folder))
    assert not about("*").applies_to(f"{folder}x/a.ts")
    assert not applies("a.ts", "*.ts", "!a.ts")


@given(st.text(max_size=40), st.text(max_size=40))
def test_any_pattern_can_be_matched(pattern: str, path: str) -> None:
    rule = PromptRule(origin="x", use=RuleUse.TOUCHED, folder="/w", paths=(pattern,))
    assert rule.applies_to(f"/w/{path}") in (True, False, None)


def touch(*paths: Path) -> Event:
    accesses = tuple(ReadPath(path=str(path)) for path in paths)
    decision = Decision(verdict=Verdict.ALLOW, risk=Risk.READ, digest="")
    data = CallJudged(call_id="c", accesses=accesses, decision=decision, preview=Preview(title="Read"))
    return Event(seq=1, at=1, source=Source(kind="test", id="x"), data=data)


async def notes(book: RuleBook, *paths: Path) -> list[str]:
    if paths:
        await book.observe([touch(*paths)])
    noted = await book.before_step()
    assert noted is None or {note.kind for note in noted.notes} == {PassageKind.RULES}
    return [] if noted is None else [note.origin for note in noted.notes]


async def test_rules_for_what_is_touched_are_noted_once_and_again_after_messages_left(folder: Path) -> None:
    write(folder, {"a/AGENTS.md": "a", "a/b/AGENTS.md": "b", ".clinerules/p.md": "---\npaths: '*.py'\n---\np"})
    book = RuleBook(granted(folder))
    assert await notes(book) == []
    assert await notes(book, folder / "README.md") == []
    assert await notes(book, folder / "a/b/x.py") == [".clinerules/p.md", "a/AGENTS.md", "a/b/AGENTS.md"]
    assert await notes(book, folder / "a/b/x.py", folder / "a") == []
    left = Compacted(step=1, through=1, dropped=1, largest="", summary="")
    await book.observe([Event(seq=2, at=1, source=Source(kind="engine", id="x"), data=left)])
    book.switches.turn("a/AGENTS.md", on=False)
    assert await notes(book) == [".clinerules/p.md", "a/b/AGENTS.md"]
    assert await notes(book) == []


async def test_a_session_that_is_taken_up_knows_what_its_conversation_holds(folder: Path) -> None:
    write(folder, {"a/AGENTS.md": "a", "a/b/AGENTS.md": "b", "c/AGENTS.md": "c"})
    trust, past = granted(folder), PastRules()
    first = RuleBook(trust)
    await first.observe([touch(folder / "a/b/x.py")])
    noted = await first.before_step()
    assert noted is not None
    left = Compacted(step=1, through=1, dropped=1, largest="", summary="")
    for data in (noted, left, Noted(notes=noted.notes[:1])):
        past.take(Event(seq=1, at=1, source=Source(kind="engine", id="x"), data=data))
    assert (list(past.read), list(past.left)) == (["a/AGENTS.md"], ["a/b/AGENTS.md"])
    again = RuleBook(trust)
    again.recall(past.read, past.left)
    assert await notes(again, folder / "a/y", folder / "c/z") == ["a/b/AGENTS.md", "c/AGENTS.md"]


async def test_many_long_rules_come_with_several_messages(folder: Path) -> None:
    write(folder, {f"a{number}/AGENTS.md": str(number) * 30_000 for number in range(5)})
    book = RuleBook(granted(folder))
    first = await notes(book, *(folder / f"a{number}/x" for number in range(5)))
    assert (first, await notes(book), await notes(book), await notes(book)) == (
        ["a0/AGENTS.md", "a1/AGENTS.md"],
        ["a2/AGENTS.md", "a3/AGENTS.md"],
        ["a4/AGENTS.md"],
        [],
    )


async def test_nothing_is_noted_in_a_folder_that_is_not_trusted(folder: Path) -> None:
    write(folder, {"a/AGENTS.md": "a", ".clinerules/p.md": "---\npaths: '*'\n---\np"})
    book = RuleBook(session_trust(folder))
    assert await notes(book, folder / "a/x.py") == []
    assert list(book.parts()) == []


def test_a_switch_takes_a_rule_out_and_in_again_also_from_another_process(folder: Path) -> None:
    write(
        folder, {"AGENTS.md": "one", ".cursorrules": "two", ".cursor/rules/m.mdc": CURSOR.format("", "", "false", "m")}
    )
    trust = granted(folder)
    book = RuleBook(trust)
    before = system_text(book.parts())
    assert "/rules lists" in rules_command(trust, "off 9")
    assert rules_command(trust, "off 3").startswith("off: .cursorrules. ")
    assert "one" in system_text(book.parts())
    assert "two" not in system_text(book.parts())
    assert "  off  .cursorrules" in rules_command(trust)
    assert RuleSwitches(folder.parent).off() == frozenset(), "another folder has its own"
    rules_command(trust, "on 3")
    assert system_text(book.parts()) == before
    manual = book.by_name("m")
    assert manual is not None
    assert manual.blocks == (Rules(origin=".cursor/rules/m.mdc", text="m"),)
    assert (book.by_name("m.mdc"), book.by_name("none")) == (manual, None)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"workspace": 1}', b"\xff"])
def test_switches_that_cannot_be_read_turn_nothing_off(folder: Path, content: bytes) -> None:
    switches = RuleSwitches(folder)
    switches.turn("AGENTS.md", on=False)
    (file,) = (folder.parent / "home" / "rules").iterdir()
    assert RuleSwitches(folder).off() == {"AGENTS.md"}
    file.write_bytes(content)
    assert RuleSwitches(folder).off() == frozenset()


def test_the_list_says_what_applies_why_and_what_it_costs(folder: Path) -> None:
    write(folder, {"AGENTS.md": "a" * 3_600, "CLAUDE.md": "c", "x/AGENTS.md": "x"})
    write(folder, {".clinerules/p.md": "---\npaths: ['*.py', 'a/**']\n---\np"})
    assert rules_command(session_trust(folder)).startswith("The rules of this folder are not used: it is not trusted.")
    assert rules_command(granted(folder)).splitlines() == [
        "Rules; about 1,000 tokens of them are in every request:",
        "  1  on   AGENTS.md          1,000 tokens  in every request",
        "  2  on   CLAUDE.md              0 tokens  in every request",
        "  3  on   .clinerules/p.md       0 tokens  when the model works on *.py, a/**",
        "  4  on   x/AGENTS.md            0 tokens  when the model works on x/",
        "/rules lists the rules. `/rules off N` and `/rules on N` turn one off and on.",
    ]


def test_the_survey_knows_every_file_of_rules_and_skills(folder: Path) -> None:
    names = ("AGENTS.md", "GEMINI.md", ".clinerules/a.txt", ".cursor/rules/a/b.mdc", ".windsurf/rules/a.md")
    skills = (".agents/skills/a/SKILL.md", ".claude/skills/b/SKILL.md", ".treadle/skills/c/SKILL.md")
    write(folder, dict.fromkeys((*names, *skills, ".github/copilot-instructions.md", "src/AGENTS.md"), "x"))
    kinds = {item.path: item.kind for item in session_trust(folder).items}
    assert kinds == {
        **dict.fromkeys((*names, ".github/copilot-instructions.md"), ActiveKind.RULES),
        **dict.fromkeys(skills, ActiveKind.SKILL),
    }
    assert {item.path for item in whole_trust(folder).nested} == {"src/AGENTS.md"}

"""Rules in the shapes that repositories have them in: each is read as the program reads it that it was written for."""

from pathlib import Path

import pytest

from treadle.app.security.trusting import session_trust, whole_trust
from treadle.app.session.rules.rule_files import PromptRule, RuleUse, find_rules, nested_rules

ALWAYS, TOUCHED, DESCRIBED, MENTIONED = RuleUse.ALWAYS, RuleUse.TOUCHED, RuleUse.DESCRIBED, RuleUse.MENTIONED
CURSOR, CLINE, CLAUDE = ".cursor/rules/a.mdc", ".clinerules/a.md", ".claude/rules/a.md"
COPILOT, WINDSURF = ".github/instructions/a.instructions.md", ".windsurf/rules/a.md"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "work" / ".git").mkdir(parents=True)
    return (tmp_path / "work").resolve()


def put(folder: Path, name: str, content: str | bytes) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())


def rules(folder: Path) -> dict[str, PromptRule]:
    return {rule.origin: rule for rule in find_rules(session_trust(folder, once=True))}


HEADERS = [
    (CURSOR, "---\ndescription: d\nglobs: \nalwaysApply: true\n---\nbody", ALWAYS),
    (CURSOR, "---  \nalwaysApply: true\n---\nbody", ALWAYS),
    (CURSOR, "---\t\nalwaysApply:\ttrue\n---\t\nbody", ALWAYS),
    (CURSOR, "\ufeff---\r\nalwaysApply: true\r\n---\r\nbody", ALWAYS),
    (CURSOR, "---\nalwaysApply: true # by all\n---\nbody", ALWAYS),
    (CURSOR, "---\nalwaysApply: True\nglobs: **/*.x\n---\nbody", ALWAYS),
    (CURSOR, "---\nalwaysApply: false\nalwaysApply: true\n---\nbody", ALWAYS),
    (CURSOR, "---\n  alwaysApply: true\n  description: d\n---\nbody", ALWAYS),
    (CURSOR, "---\nalwaysApply:true\n---\nbody", ALWAYS),
    (CURSOR, "---\n\n# a comment\nalwaysApply: true\n\n---\n\n\nbody", ALWAYS),
    (CURSOR, "---\nglobs: **/*.ts, **/*.js\nalwaysApply: false\n---\nbody", TOUCHED),
    (CURSOR, "---\nglobs: *.ts\n---\nbody", TOUCHED),
    (CURSOR, '---\nglobs: ["**/*.ts", "**/*.tsx"]\n---\nbody', TOUCHED),
    (CURSOR, "---\nglobs:\n  - '**/*.ts'\n\t- **/*.tsx\n---\nbody", TOUCHED),
    (CURSOR, "---\nglobs: **/*.{ts,tsx}\n---\nbody", TOUCHED),
    (CURSOR, "---\ndescription: when it fits: always\nglobs:\nalwaysApply: false\n---\nbody", DESCRIBED),
    (CURSOR, "---\ndescription:\nglobs: []\nalwaysApply: false\n---\nbody", MENTIONED),
    (CURSOR, "body alone", MENTIONED),
    (CURSOR, "---\nalwaysApply: false\nno end\nbody", MENTIONED),
    (".cursor/rules/deep/a.md", "body alone", ALWAYS),
    (".cursor/rules/deep/a.md", "---\nglobs: **/*.ts\n---\nbody", TOUCHED),
    (CLINE, "body alone", ALWAYS),
    (CLINE, "---\npaths:\n  - '**/*.ts'\n---\nbody", TOUCHED),
    (CLINE, "---\npaths: **/*.ts\n---\nbody", TOUCHED),
    (CLINE, "---\npaths:\n---\nbody", ALWAYS),
    (CLINE, "---\ntitle: t\nauthor: [a, b]\n---\nbody", ALWAYS),
    (".clinerules/a", "body without an ending", ALWAYS),
    (".clinerules/a.mdc", "---\npaths: ['**/*.ts']\n---\nbody", TOUCHED),
    (".clinerules/b.mdc", "body alone", ALWAYS),
    (".clinerules/a.yaml", "body: in yaml", ALWAYS),
    (CLAUDE, "body alone", ALWAYS),
    (CLAUDE, "---\npaths:\n  - **/*.ts\n---\nbody", TOUCHED),
    (CLAUDE, "---\npaths: **/*.ts, **/*.tsx\n---\nbody", TOUCHED),
    (CLAUDE, "---\npaths: []\n---\nbody", ALWAYS),
    (CLAUDE, "---\npaths: '**'\n---\nbody", ALWAYS),
    (CLAUDE, "---\nglobs: **/*.ts\n---\nbody", TOUCHED),
    (".claude/CLAUDE.md", "body", ALWAYS),
    (COPILOT, "---\napplyTo: '**'\n---\nbody", ALWAYS),
    (COPILOT, '---\napplyTo: "**/*.ts,**/*.tsx"\n---\nbody', TOUCHED),
    (COPILOT, "---\ndescription: d\napplyTo: **/*.ts, **/*.tsx\n---\nbody", TOUCHED),
    (COPILOT, "---\ndescription: d\n---\nbody", DESCRIBED),
    (COPILOT, "body alone", DESCRIBED),
    (".github/instructions/deep/a.instructions.md", "---\napplyTo: '**/*.ts'\n---\nbody", TOUCHED),
    (WINDSURF, "---\ntrigger: always_on\n---\nbody", ALWAYS),
    (WINDSURF, "---\ntrigger: glob\nglobs: **/*.ts\n---\nbody", TOUCHED),
    (WINDSURF, "---\ntrigger: model_decision\ndescription: d\n---\nbody", DESCRIBED),
    (WINDSURF, "---\ntrigger: manual\n---\nbody", MENTIONED),
    (WINDSURF, "body alone", ALWAYS),
]


@pytest.mark.parametrize(("name", "content", "use"), HEADERS)
def test_a_rule_applies_when_its_own_program_applies_it(folder: Path, name: str, content: str, use: RuleUse) -> None:
    put(folder, name, content)
    (rule,) = rules(folder).values()
    assert (rule.origin, rule.use, rule.unused) == (name, use, "")
    assert rule.blocks[0].text.endswith(content.rsplit("\n", maxsplit=1)[-1])
    if use is TOUCHED:
        assert rule.applies_to(str(folder / "a.ts"))
        assert not rule.applies_to(str(folder / "a.rb"))


def test_rules_of_folders_below_apply_to_what_is_in_these(folder: Path) -> None:
    put(folder, "pkg/.cursor/rules/always.mdc", "---\nalwaysApply: true\n---\na")
    put(folder, "pkg/.cursor/rules/globs.mdc", "---\nglobs: src/**\n---\ng")
    put(folder, "pkg/.cursor/rules/manual.mdc", "m")
    put(folder, "pkg/.claude/rules/deep/c.md", "c")
    put(folder, "pkg/.github/instructions/x.instructions.md", "of the top of a repository alone")
    found = {one.origin: one for one in nested_rules(session_trust(folder, once=True), folder / "pkg")}
    inside = {name: (rule.use.value, rule.applies_to(str(folder / "pkg/src/a"))) for name, rule in found.items()}
    assert inside == {
        "pkg/.claude/rules/deep/c.md": ("touched", True),
        "pkg/.cursor/rules/always.mdc": ("touched", True),
        "pkg/.cursor/rules/globs.mdc": ("touched", True),
        "pkg/.cursor/rules/manual.mdc": ("mentioned", True),
    }
    assert not found["pkg/.cursor/rules/globs.mdc"].applies_to(str(folder / "src/a"))
    assert not found["pkg/.cursor/rules/globs.mdc"].applies_to(str(folder / "pkg/docs/a"))
    assert {item.path for item in whole_trust(folder).nested} == set(found)


def test_an_empty_list_of_paths_of_cline_applies_to_nothing_and_says_so(folder: Path) -> None:
    put(folder, CLINE, "---\npaths: []\n---\nbody")
    assert rules(folder)[CLINE].unused == "The list of its paths is empty, so it applies to nothing."


GLOBS = [
    # Only taken out: everything else, but in VS Code, where we take the author's word.
    (CURSOR, "globs", "!test/**", ["a.ts", "src/a.ts"], ["test/a.ts"]),
    (CLINE, "paths", "!test/**", ["a.ts", "src/a.ts"], ["test/a.ts"]),
    (CLAUDE, "paths", "!test/**", ["a.ts", "src/a.ts"], ["test/a.ts"]),
    (COPILOT, "applyTo", "!test/**", ["a.ts", "src/a.ts"], ["test/a.ts"]),
    (WINDSURF, "globs", "!**/.agent/**", ["a.ts", "src/a.ts"], [".agent/a", "x/.agent/y/z"]),
    # Beside others: each alone, taken out in their order, or a letter.
    (CURSOR, "globs", "src/**,!src/gen/**", ["src/a", "src/gen/a", "docs/a"], []),
    (CLINE, "paths", "src/**,!src/gen/**", ["src/a", "src/gen/a", "docs/a"], []),
    (CLAUDE, "paths", "src/**,!src/gen/**", ["src/a", "src/x/a"], ["src/gen/a", "docs/a"]),
    (CLAUDE, "paths", "!src/gen/**,src/**", ["src/a", "src/x/a"], ["src/gen/a", "docs/a"]),
    (CLAUDE, "paths", "src/**,!src/gen/**,src/gen/keep.ts", ["src/a", "src/gen/keep.ts"], ["src/gen/a"]),
    (WINDSURF, "globs", "**/*.ts,!**/*.test.ts", ["a.ts", "x/a.ts"], ["a.test.ts", "x/a.test.ts", "a.js"]),
    (COPILOT, "applyTo", "src/**,!src/gen/**", ["src/a", "src/gen/a"], ["docs/a"]),
    # The folder that a glob begins in, case, and braces.
    (COPILOT, "applyTo", "src/*.ts", ["src/a.ts", "vendor/x/src/a.ts", "SRC/A.TS"], ["src/x/a.ts"]),
    (COPILOT, "applyTo", "/src/*.ts", ["src/a.ts"], ["vendor/src/a.ts"]),
    (COPILOT, "applyTo", "{src,lib}/**", ["src/a", "lib/x/a"], ["docs/a"]),
    (CURSOR, "globs", "src/**/*.ts", ["src/a.ts", "src/x/a.ts"], ["SRC/a.ts", "x/src/a.ts"]),
    (CURSOR, "globs", "src/**/*.{ts,tsx}", ["src/a.ts", "src/x/a.tsx"], ["src/a.js"]),
    (CURSOR, "globs", "!{a,b}/**", ["c/x", "x"], ["a/x", "b/x"]),
    (CLAUDE, "paths", "**/*.rb", ["a.rb", "lib/a.rb", ".hid/a.rb"], ["a.rbx"]),
    (CLAUDE, "paths", "./src/**", ["src/a"], ["a"]),
    (CLAUDE, "paths", "*.ts", ["a.ts", "src/a.ts"], ["a.tsx"]),
]


@pytest.mark.parametrize(("name", "key", "globs", "fit", "others"), GLOBS)
def test_globs_fit_what_they_fit_in_their_own_program(
    folder: Path, name: str, key: str, globs: str, fit: list[str], others: list[str]
) -> None:
    trigger = "trigger: glob\n" if name == WINDSURF else ""
    put(folder, name, f"---\n{trigger}{key}: [{', '.join(map(repr, globs.split(',')))}]\n---\nbody")
    if "{" in globs:
        put(folder, name, f'---\n{trigger}{key}: "{globs}"\n---\nbody')
    (rule,) = rules(folder).values()
    assert rule.use is TOUCHED
    assert [path for path in (*fit, *others) if rule.applies_to(str(folder / path))] == fit


@pytest.mark.parametrize(("name", "key"), [(CURSOR, "globs"), (CLINE, "paths"), (COPILOT, "applyTo")])
def test_what_is_not_taken_out_is_said(folder: Path, name: str, key: str) -> None:
    put(folder, name, f"---\n{key}: ['src/**', '!src/gen/**']\n---\nbody")
    assert rules(folder)[name].problem.startswith("!src/gen/** takes nothing out")


IMPORTS, SAME = "It only imports AGENTS.md, which is used.", "It is the same file as AGENTS.md."
REPLACED = "AGENTS.override.md beside it is used."
BESIDE = [
    ({"AGENTS.md": "a", "CLAUDE.md": "c"}, {"AGENTS.md": "", "CLAUDE.md": ""}),
    ({"AGENTS.md": "a", "CLAUDE.md": "a\n"}, {"AGENTS.md": "", "CLAUDE.md": "It has the same text as AGENTS.md."}),
    ({"AGENTS.md": "a", "CLAUDE.md": "@AGENTS.md"}, {"CLAUDE.md": IMPORTS}),
    ({"AGENTS.md": "a", "CLAUDE.md": "\n@./AGENTS.md\n"}, {"CLAUDE.md": IMPORTS}),
    ({"AGENTS.md": "a", "CLAUDE.md": "@AGENTS.md\nMore."}, {"CLAUDE.md": ""}),
    ({"AGENTS.md": "a", "CLAUDE.md": "@AGENTS.md\n@docs/b.md", "docs/b.md": "b"}, {"CLAUDE.md": ""}),
    ({"AGENTS.md": "a", "CLAUDE.md": ">AGENTS.md"}, {"CLAUDE.md": SAME}),
    ({"CLAUDE.md": "c", "AGENTS.md": ">CLAUDE.md"}, {"CLAUDE.md": SAME}),
    ({"AGENTS.md": "a", ".claude/CLAUDE.md": "@../AGENTS.md"}, {".claude/CLAUDE.md": IMPORTS}),
    ({"AGENTS.md": "a", "GEMINI.md": "@AGENTS.md"}, {"GEMINI.md": IMPORTS}),
    ({"AGENTS.md": "a", "AGENTS.override.md": "o", "CLAUDE.md": "c"}, {"AGENTS.md": REPLACED, "CLAUDE.md": ""}),
    ({"AGENTS.md": "", "CLAUDE.md": "c"}, {"AGENTS.md": "It is empty.", "CLAUDE.md": ""}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("files", "unused", "below"),
    [
        (files, unused, below)
        for files, unused in BESIDE
        for below in ("", "pkg/")
        if not (below and ".claude/CLAUDE.md" in files)
    ],
)
def test_each_file_of_one_folder_is_read_but_what_another_one_says(
    folder: Path, files: dict[str, str], unused: dict[str, str], below: str
) -> None:
    for name, content in files.items():
        if content.startswith(">"):
            (folder / below / name).symlink_to(content[1:])
        else:
            put(folder, f"{below}{name}", content)
    found = rules(folder)
    if below:
        found = {one.origin: one for one in nested_rules(session_trust(folder, once=True), folder / "pkg")}
    assert {name: found[f"{below}{name}"].unused.replace(below or "\0", "") for name in unused} == unused
    used = [block for rule in found.values() if not rule.unused for block in rule.blocks]
    assert len({block.origin for block in used}) == len(used), "no file is sent twice"

"""Trust in folders: what would act is listed, a change asks again, and the folder itself has no say."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.protocol.errors import StoreError
from treadle.store.activation import (
    AGENT_FOLDERS,
    COMMAND_FOLDERS,
    RULE_FILES,
    RULE_FOLDERS,
    SERVER_FILES,
    SERVERS_AMONG_OTHERS,
    SKILL_FOLDERS,
    ActiveKind,
    active_kind,
    digest_of,
)
from treadle.store.active_items import find_items, read_item
from treadle.store.nested_rules import nested_repositories
from treadle.store.trusted_folders import Trust, TrustState, TrustStore


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    for name, text in {
        "AGENTS.md": "rules",
        ".mcp.json": "{}",
        ".treadle/config.toml": "x = 1",
        ".treadle/hooks/a": "h",
        ".git/config": "[core]\n\tfsmonitor = ./evil\n",
        ".git/hooks/pre-commit": "#!/bin/sh",
        ".git/hooks/pre-push.sample": "#!/bin/sh",
        "src/main.py": "print()",
        "README.md": "read",
    }.items():
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text(text)
    return work


@pytest.fixture
def store(tmp_path: Path) -> TrustStore:
    return TrustStore(tmp_path / "data" / "trust")


def listed(trust: Trust) -> list[tuple[str, str]]:
    return [(item.path, item.kind) for item in trust.items]


def test_a_folder_is_not_trusted_at_first_and_what_would_act_is_listed(folder: Path, store: TrustStore) -> None:
    trust = store.read(folder)
    assert (trust.state, trust.changed) == (TrustState.UNTRUSTED, ())
    assert listed(trust) == [
        (".git/config", "git"),
        (".git/hooks/pre-commit", "hook"),
        (".mcp.json", "servers"),
        (".treadle/config.toml", "settings"),
        (".treadle/hooks/a", "settings"),
        ("AGENTS.md", "rules"),
    ]


def test_trust_lasts_as_long_as_what_acts_stays_the_same(folder: Path, store: TrustStore) -> None:
    store.grant(store.read(folder))
    assert store.read(folder).state is TrustState.TRUSTED
    (folder / "src/main.py").write_text("changed")
    (folder / ".git/hooks/x.sample").write_text("sample")
    assert store.read(folder).state is TrustState.TRUSTED
    assert (store.revoke(folder), store.revoke(folder), store.read(folder).state) == (True, False, "untrusted")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("AGENTS.md", "other rules"),
        ("CLAUDE.md", "new rules"),
        (".mcp.json", '{"a": 1}'),
        (".treadle/new", ""),
        (".git/config", "[core]\n\tfsmonitor = ./worse\n"),
        (".git/hooks/post-checkout", "new"),
        (".git/info/attributes", "* filter=x"),
    ],
)
def test_what_is_new_or_changed_asks_again(folder: Path, store: TrustStore, name: str, text: str) -> None:
    store.grant(store.read(folder))
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text(text)
    trust = store.read(folder)
    assert (trust.state, trust.changed) == (TrustState.CHANGED, (name,))
    assert store.grant(trust).state is store.read(folder).state is TrustState.TRUSTED


def test_what_is_gone_asks_again_too(folder: Path, store: TrustStore) -> None:
    store.grant(store.read(folder))
    (folder / "AGENTS.md").unlink()
    assert store.read(folder).changed == ("AGENTS.md",)


def test_only_what_was_shown_is_trusted(folder: Path, store: TrustStore) -> None:
    shown = store.read(folder)
    (folder / ".mcp.json").write_text("changed while the dialog was open")
    store.grant(shown)
    assert store.read(folder).changed == (".mcp.json",)


def test_a_link_shows_where_it_leads_and_what_is_there(folder: Path, store: TrustStore, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("same")
    (tmp_path / "b").write_text("same")
    (folder / "CLAUDE.md").symlink_to(tmp_path / "a")
    store.grant(store.read(folder))
    (folder / "CLAUDE.md").unlink()
    (folder / "CLAUDE.md").symlink_to(tmp_path / "b")
    assert store.read(folder).changed == ("CLAUDE.md",)
    store.grant(store.read(folder))
    (tmp_path / "b").write_text("other")
    assert store.read(folder).changed == ("CLAUDE.md",)


def test_rules_above_the_folder_count_up_to_the_top_of_the_repository(folder: Path, store: TrustStore) -> None:
    (folder.parent / "AGENTS.md").write_text("beyond the repository")
    (folder / "sub/deep").mkdir(parents=True)
    (folder / "sub/CLAUDE.md").write_text("between")
    trust = store.read(folder / "sub/deep")
    assert listed(trust) == [(str(folder / "AGENTS.md"), "rules"), (str(folder / "sub/CLAUDE.md"), "rules")]


def test_the_same_folder_through_a_link_is_the_same_decision(folder: Path, store: TrustStore, tmp_path: Path) -> None:
    store.grant(store.read(folder))
    (tmp_path / "link").symlink_to(folder)
    assert store.read(tmp_path / "link").state is TrustState.TRUSTED
    assert store.read(tmp_path).state is TrustState.UNTRUSTED


def test_decisions_are_private_and_one_that_others_could_write_is_none(
    folder: Path, store: TrustStore, tmp_path: Path
) -> None:
    store.grant(store.read(folder))
    (file,) = (tmp_path / "data/trust").iterdir()
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    file.chmod(0o666)
    assert store.read(folder).state is TrustState.UNTRUSTED
    file.chmod(0o600)
    for broken in ("", "{}", "[]", '{"workspace": "/other", "at": 0, "items": []}'):
        file.write_text(broken)
        assert store.read(folder).state is TrustState.UNTRUSTED


def test_a_decision_that_cannot_be_written_is_said(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="cannot be saved"):
        TrustStore(tmp_path / "file").grant(TrustStore(tmp_path / "file").read(folder))


def test_nothing_that_waits_is_opened(folder: Path) -> None:
    os.mkfifo(folder / "CLAUDE.md")
    (folder / ".treadle/loop").symlink_to(folder / ".treadle/loop")
    found = {item.path: item.digest for item in find_items(folder)}
    assert len(found["CLAUDE.md"]) == 64
    assert found[".treadle/loop"].startswith("unreadable: ")


@pytest.mark.parametrize(
    "text",
    [
        "",
        '[core]\n\tbare = false\n[remote "o"]\n\turl = git@example.org:a/b.git\n[user]\n\tname = A B\n',
        '[branch "main"]\n\tremote = o\n\tmerge = refs/heads/main\n',
        "# a comment\n[core]\n\tfilemode\n",
    ],
)
def test_settings_of_git_that_run_nothing_are_not_listed(text: str) -> None:
    assert digest_of(".git/config", text.encode()) == ""


@pytest.mark.parametrize(
    "text",
    [
        "[core]\n\tfsmonitor = x\n",
        "[core] fsmonitor = x\n",
        "[CORE]\n\tFsMonitor = x\n",
        "[core]\n\tbare = false \\\n\tfsmonitor = x\n",
        "[include]\n\tpath = x\n",
        '[remote "o"]\n\turl = ext::sh -c x\n',
        '[remote "o"]\n\tuploadpack = x\n',
        "[alias]\n\tst = !x\n",
        '[filter "a"]\n\tclean = x\n',
        "[core]\n\thooksPath = x\n",
        "fsmonitor = x\n",
        "\ufeff[core]\n\tfsmonitor = x\n",
        "[core\n]fsmonitor=x\n",
    ],
)
def test_settings_of_git_that_run_a_program_are_listed(text: str) -> None:
    assert len(digest_of(".git/config", text.encode())) == 64


@settings(max_examples=150)
@given(st.binary(max_size=200), st.text(max_size=30))
def test_any_bytes_and_names_can_be_judged(content: bytes, name: str) -> None:
    kind = active_kind(name)
    assert kind is None or kind in ActiveKind
    digest_of(".git/config", content)


def test_a_no_is_remembered_for_exactly_what_was_shown(folder: Path, store: TrustStore) -> None:
    store.grant(store.read(folder))
    (folder / "AGENTS.md").write_text("more rules")
    answered = store.refuse(store.read(folder))
    refused = store.read(folder)
    assert answered == refused, "what was said and what is read of it are the same"
    assert (refused.state, refused.refused, store.folders()) == (TrustState.UNTRUSTED, True, [])
    (folder / "AGENTS.md").write_text("other rules")
    assert (store.read(folder).state, store.read(folder).refused) == (TrustState.UNTRUSTED, False)


def test_trusted_folders_are_listed(folder: Path, store: TrustStore, tmp_path: Path) -> None:
    assert store.folders() == []
    store.grant(store.read(folder))
    store.grant(store.read(tmp_path))
    assert store.folders() == [tmp_path, folder]
    store.revoke(tmp_path)
    assert store.folders() == [folder]


def test_what_was_known_tells_changed_from_new(folder: Path, store: TrustStore) -> None:
    store.grant(store.read(folder))
    (folder / "AGENTS.md").write_text("other rules")
    (folder / "CLAUDE.md").write_text("new")
    trust = store.read(folder)
    assert [path in trust.known for path in trust.changed] == [True, False]


def test_a_name_that_is_no_text_is_listed_and_can_be_decided_on(folder: Path, store: TrustStore) -> None:
    (folder / os.fsdecode(b".treadle/\xff")).write_text("x")
    trust = store.read(folder)
    assert ".treadle/\\udcff" in [item.path for item in trust.items]
    store.grant(trust)
    assert store.read(folder).state is TrustState.TRUSTED


def test_a_listed_file_is_read_only_as_it_was_listed(folder: Path, store: TrustStore, tmp_path: Path) -> None:
    (folder / "CLAUDE.md").symlink_to(tmp_path / "target")
    (tmp_path / "target").write_text("linked")
    items = {item.path: item for item in store.read(folder).items}
    contents = {path: read_item(folder, item) for path, item in items.items()}
    assert (contents["AGENTS.md"], contents["CLAUDE.md"]) == (b"rules", b"linked")
    (folder / "AGENTS.md").write_text("other")
    (folder / "CLAUDE.md").unlink()
    (folder / "CLAUDE.md").write_text("linked")
    (folder / ".mcp.json").unlink()
    assert [read_item(folder, items[path]) for path in ("AGENTS.md", "CLAUDE.md", ".mcp.json")] == [None, None, None]


CLAUDE_HOOKS = '{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "x"}]}]}}'
ACTING = [
    *((name, "rules") for name in RULE_FILES if name not in RULE_FOLDERS),
    *((f"{folder}/deep/a{ending}", "rules") for folder, endings in RULE_FOLDERS.items() for ending in endings),
    *((f"{folder}/deep/a{ending}", "command") for folder, ending in COMMAND_FOLDERS.items()),
    *((f"{folder}/own/SKILL.md", "skill") for folder in SKILL_FOLDERS),
    *((f"{folder}/deep/a.md", "agent") for folder in AGENT_FOLDERS),
    *((f".claude/{name}", "session hook") for name in ("settings.json", "settings.local.json", "hooks/deep/a.sh")),
    *((name, "servers") for name in SERVER_FILES if name not in SERVERS_AMONG_OTHERS),
    (".treadle/anything/at/all", "settings"),
    (".git/config", "git"),
    (".git/config.worktree", "git"),
    (".git/info/attributes", "git"),
    (".git/hooks/pre-commit", "hook"),
]
INERT = [
    "src/agents/x.md",
    "notes.md",
    ".github/workflows/ci.yml",
    ".github/other.md",
    ".claude/notes.md",
    ".claude/commands/a.txt",
    ".claude/agents/a.txt",
    ".cursor/agents/a.md",
    ".claude/skills/SKILL.md",
    ".claude/skills/own/deep/SKILL.md",
    ".claude/skills/own/other.md",
    ".claude/rules/a.txt",
    ".cursor/settings.json",
    ".cursor/rules/a.txt",
    ".windsurf/other.md",
    ".git/hooks/pre-commit.sample",
    ".git/HEAD",
    ".git/info/exclude",
]


def test_each_file_that_acts_is_found_by_itself_and_with_all_others_and_what_acts_nowhere_is_not(
    tmp_path: Path,
) -> None:
    def write(folder: Path, name: str) -> None:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(CLAUDE_HOOKS if name.startswith(".claude/settings") else "[alias]\n\tst = !x\n")

    for number, (name, kind) in enumerate(ACTING):
        write(alone := tmp_path / str(number), name)
        needs = ".claude/hooks/" in name  # scripts act only where settings have hooks
        assert [(item.path, item.kind) for item in find_items(alone)] == ([] if needs else [(name, kind)])
    for name in [*(name for name, _ in ACTING), *INERT]:
        write(tmp_path / "all", name)
    assert [(item.path, item.kind) for item in find_items(tmp_path / "all")] == sorted(ACTING)


def test_scripts_of_claude_code_act_only_where_its_settings_have_hooks(folder: Path) -> None:
    for name, text in {"settings.json": '{"model": "x"}', "settings.local.json": "{}", "hooks/a.sh": "x"}.items():
        (folder / ".claude" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / ".claude" / name).write_text(text)
    assert not [item.path for item in find_items(folder) if item.path.startswith(".claude")]


def test_rules_that_were_approved_stay_so_until_they_change(folder: Path, store: TrustStore) -> None:
    trust = store.read(folder)
    rules = next(item for item in trust.items if item.path == "AGENTS.md")
    others = tuple(item for item in trust.items if item is not rules)
    store.approve(trust, rules)
    read = store.read(folder)
    assert (read.approved, read.waiting, read.state) == ((rules,), others, TrustState.UNTRUSTED)
    assert store.is_approved(folder, "AGENTS.md", rules.digest)
    store.grant(read)
    assert (store.read(folder).approved, store.read(folder).state) == ((rules,), TrustState.TRUSTED)
    (folder / "AGENTS.md").write_text("other rules")
    changed = store.read(folder)
    assert (changed.approved, changed.waiting, changed.changed) == ((), changed.items, ("AGENTS.md",))
    assert not store.is_approved(folder, "AGENTS.md", changed.items[-1].digest)


@pytest.mark.parametrize("name", RULE_FILES)
def test_each_name_of_rules_is_found_as_a_file_and_a_folder_of_the_name_is_not_passed_over(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / "file" / name).parent.mkdir(parents=True)
    (tmp_path / "file" / name).write_text("rules")
    (tmp_path / "folder" / name).mkdir(parents=True)
    (tmp_path / "folder" / name / "a.md").write_text("rules")
    inside = [(f"{name}/a.md", "rules")] if name in RULE_FOLDERS else [(name, "rules")]
    assert [(item.path, item.kind) for item in find_items(tmp_path / "file")] == [(name, "rules")]
    assert [(item.path, item.kind) for item in find_items(tmp_path / "folder")] == inside


@pytest.mark.parametrize(
    "command",
    [
        "scripts/h.sh",
        "./scripts/h.sh --fast",
        "python3 scripts/h.sh; true",
        '"$CLAUDE_PROJECT_DIR"/scripts/h.sh',
        "${TREADLE_PROJECT_DIR}/scripts/h.sh",
        "cat <scripts/h.sh|sh",
        "sh 'scripts/h.sh'",
    ],
)
@pytest.mark.parametrize("file", [".treadle/config.toml", ".claude/settings.json"])
def test_a_script_that_a_hook_names_is_trusted_with_it(
    folder: Path, store: TrustStore, command: str, file: str
) -> None:
    hooks = {"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": command}]}]}}
    line = f"[[hooks.PreToolUse]]\nhooks = [{{type = 'command', command = {json.dumps(command)}}}]\n"
    for name, text in {file: json.dumps(hooks) if file.endswith(".json") else line, "scripts/h.sh": "true\n"}.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    kind = "settings" if file == ".treadle/config.toml" else "session hook"
    trust = store.read(folder)
    assert ("scripts/h.sh", kind) in listed(trust)
    store.grant(trust)
    assert store.read(folder).state is TrustState.TRUSTED
    (folder / "scripts" / "other.sh").write_text("true\n")
    (folder / "README.md").write_text("changed")
    assert store.read(folder).state is TrustState.TRUSTED
    (folder / "scripts" / "h.sh").write_text("evil\n")
    assert store.read(folder).changed == ("scripts/h.sh",)


def test_settings_that_cannot_be_read_or_name_no_script_list_none(folder: Path) -> None:
    (folder / "scripts").mkdir()
    (folder / "scripts" / "h.sh").write_text("true\n")
    (folder / ".claude").mkdir()
    before = [item.path for item in find_items(folder)]
    (folder / ".treadle" / "config.toml").write_text("model = 'scripts/h.sh'\n# hooks\n")
    assert [item.path for item in find_items(folder)] == before
    (folder / ".claude" / "settings.json").write_text('{"hooks": {"Stop": [{"command": "scripts/h.sh"}]} // why\n}')
    assert [item.path for item in find_items(folder)] == sorted([*before, ".claude/settings.json", "scripts/h.sh"])


def _repository(folder: Path, form: str) -> None:
    """Make what git takes for a repository, in a form, with a setting and a hook that run something."""
    data = {"usual": folder / ".git", "bare": folder}.get(form, folder.parent / "data")
    for name, text in {
        "HEAD": "ref: refs/heads/main\n",
        "config": "[core]\n\tfsmonitor = ./evil\n",
        "hooks/pre-commit": "#!/bin/sh",
        "hooks/pre-push.sample": "#!/bin/sh",
        "objects/x": "",
        "refs/x": "",
    }.items():
        (data / name).parent.mkdir(parents=True, exist_ok=True)
        (data / name).write_text(text)
    folder.mkdir(exist_ok=True)
    if form == "a link":
        (folder / ".git").symlink_to("../data")
    elif form == "a worktree":
        own = data / "worktrees/work"
        own.mkdir(parents=True)
        (own / "HEAD").write_text("ref: refs/heads/other\n")
        (own / "commondir").write_text("../..\n")
        (folder / ".git").write_text(f"gitdir: {own}\n")
    elif form == "a file":
        (folder / ".git").write_text("gitdir: ../data\n")


_ELSEWHERE = ("a file", "a link", "a worktree")


@pytest.mark.parametrize("form", ["usual", "bare", *_ELSEWHERE])
def test_what_git_would_run_is_listed_wherever_its_data_lie(tmp_path: Path, store: TrustStore, form: str) -> None:
    work = tmp_path / "par" / "work"
    work.parent.mkdir()
    _repository(work, form)
    data = {"usual": ".git/", "bare": ""}.get(form, f"{tmp_path}/par/data/")
    run = [(f"{data}config", "git"), (f"{data}hooks/pre-commit", "hook")]
    own = [(".git", "git")] if form in _ELSEWHERE else []
    assert listed(store.read(work)) == sorted([*own, *run])
    store.grant(store.read(work))
    place = work / data
    (place / "objects/y").write_text("")
    assert store.read(work).state is TrustState.TRUSTED
    for name in ("config", "hooks/pre-commit", "hooks/post-merge"):
        (place / name).write_text("[core]\n\tpager = ./worse\n")
        assert store.read(work).changed == (f"{data}{name}",)
        store.grant(store.read(work))


@pytest.mark.parametrize("form", ["usual", "bare", *_ELSEWHERE])
def test_repositories_below_a_folder_are_found_where_somebody_looks(tmp_path: Path, form: str) -> None:
    par = tmp_path.resolve() / "par"
    (par / "w").mkdir(parents=True)
    _repository(par / "w" / "deep", form)
    data = {"usual": "w/deep/.git/", "bare": "w/deep/"}.get(form, "w/data/")
    found = [item.path for item in nested_repositories(par)]
    own = ["w/deep/.git"] if form in _ELSEWHERE else []
    # Data that are in the folder, too, are a repository by their form.
    assert sorted(set(found)) == sorted([*own, f"{data}config", f"{data}hooks/pre-commit"])
    assert find_items(par) == ()

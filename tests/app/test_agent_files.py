"""Folders as repositories have them, for many agents at once: each file is used, or named with why it is not."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from treadle.app.config.layers import load_settings
from treadle.app.reports.hook_list import hook_text, list_hooks
from treadle.app.reports.rule_list import rules_command
from treadle.app.reports.unused_files import unused_files
from treadle.app.security.trusting import SessionTrust, session_trust
from treadle.app.servers.configured import configured_servers
from treadle.app.session.own_commands.command_files import find_texts
from treadle.app.session.rules.rule_files import find_rules, nested_rules
from treadle.app.session.rules.skills import find_skills
from treadle.app.subagents.agent_files import read_agents

CLAUDE_HOOK = {"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "x"}]}]}}
SERVER = {"mcpServers": {"a": {"command": "x"}}}
CONTENTS = {
    ".claude/settings.json": json.dumps(CLAUDE_HOOK),
    ".claude/settings.local.json": json.dumps({"permissions": {"allow": ["Bash(ls)"]}}),
    ".cursor/hooks.json": json.dumps({"version": 1, "hooks": {"beforeShellExecution": [{"command": "x"}]}}),
    ".github/hooks/end.json": json.dumps({"version": 1, "hooks": {"sessionEnd": [{"type": "command", "bash": "x"}]}}),
    ".gemini/settings.json": json.dumps({**SERVER, "hooks": {"BeforeTool": [{"hooks": [{"command": "y"}]}]}}),
    ".codex/config.toml": '[mcp_servers.b]\ncommand = "y"\n',
    ".vscode/mcp.json": json.dumps({"servers": {"c": {"command": "z"}}}),
    "opencode.json": json.dumps({"mcp": {"d": {"type": "local", "command": ["w"]}}, "instructions": ["docs/a.md"]}),
    ".gemini/commands/fix.toml": 'prompt = "Fix."',
    "CLAUDE.md": "Use tabs.\n@docs/style.md",
    "docs/style.md": "The style.",
}  # fmt: skip

LAYOUTS = """
AGENTS.md
CLAUDE.md docs/style.md
AGENTS.md CLAUDE.md docs/style.md GEMINI.md
AGENTS.md .cursor/rules/00-core.mdc .cursor/rules/10-react.mdc .cursor/commands/review.md .cursor/hooks.json
.cursor/hooks.json .cursor/mcp.json
.cursor/agents/implement.md .cursor/mcp.json .cursor/rules/global.mdc .cursor/skills/test/SKILL.md +
  .cursor/skills/test/reference.md
.cursor/rules/notes.txt .cursor/rules/deep/er/x.mdc .cursorrules .cursor/worktrees.json
.cursor/plans/a.plan.md .cursor/environment.json .cursor/rules/README.md
pkg/.cursor/rules/a.mdc pkg/AGENTS.md pkg/.claude/rules/b.md pkg/CLAUDE.md
.github/copilot-instructions.md .github/instructions/go.instructions.md .github/instructions/py.instructions.md +
  .kiro/steering/a.md
.github/copilot-instructions.md .github/hooks/end.json .github/PULL_REQUEST_TEMPLATE.md
.github/instructions/manifests.instructions.md .github/instructions/notes.md .github/prompts/fix.prompt.md +
  .github/prompts/other.md
.github/agents/a.agent.md .github/chatmodes/plan.chatmode.md .github/skills/a/SKILL.md .vscode/mcp.json
.claude/CLAUDE.md .claude/agents/README.md .claude/agents/a.md .claude/agents/b.md .claude/rules/a.md +
  .claude/rules/deep/b.md .claude/sdlc.yaml .claude/settings.json .claude/settings.local.json
.claude/mcp.json .claude/commands/fix.md .claude/commands/deep/er.md
.claude/commands/my_command.md .claude/commands/notes.txt .claude/output-styles/brief.md
.claude/skills/a/SKILL.md .claude/skills/a/references/b.md .claude/skills/README.md .claude/skills/flat.md
.claude/skills/group/a/SKILL.md .claude/agents/x.md
.claude/settings.json .claude/hooks/check.sh .mcp.json
.claude/hooks/README.md .claude/hooks/check.py .claude/settings.local.json
.claude/plans/a.md .claude/docs/b.md .claude/scheduled.json .claude/launch.json
.claude-plugin/plugin.json .claude/settings.json
.codex/config.toml .codex/prompts/a.md .codex/skills/a/SKILL.md AGENTS.md
.codex/config.toml .codex/agents/a.toml .codex/hooks.json
.gemini/settings.json .gemini/commands/fix.toml GEMINI.md .gemini/GEMINI.md
.gemini/commands/deep/a.toml .gemini/commands/b.md .gemini/agents/a.md .gemini/skills/s/SKILL.md
opencode.json .opencode/command/a.md .opencode/commands/b.md .opencode/agent/c.md .opencode/plugin/d.ts
opencode.jsonc .opencode/agents/a.md .opencode/skill/s/SKILL.md .opencode/plugins/p.js
.clinerules
.clinerules/a.md .clinerules/b.txt .clinerules/c .clinerules/d.yaml .clinerules/deep/e.md
.clinerules/general.md .clinerules/hooks/PreToolUse .clinerules/hooks/README.md .clinerules/skills/s/SKILL.md +
  .clinerules/workflows/pr.md
.clinerules/workflows/deep/a.md .clinerules/workflows/b.txt
.cline/skills/s/SKILL.md .cline/agents/a.md
.windsurf/rules/a.md .windsurf/workflows/b.md .windsurfrules .windsurf/mcp_config.json .windsurf/hooks.json
.windsurf/rules/b.txt .windsurf/skills/s/SKILL.md
.roo/rules/a.md .roo/rules-code/b.md .roo/mcp.json .roo/commands/c.md .roorules .roomodes
.kilocode/rules/a.md .kilocode/mcp.json .kilocodemodes
.amazonq/rules/a.md .amazonq/mcp.json .amazonq/cli-agents/b.json
.junie/guidelines.md .junie/mcp/mcp.json
.trae/rules/project_rules.md AGENTS.md
.augment/rules/a.md .augment-guidelines
.continue/rules/a.md .continue/config.yaml .continue/prompts/b.md .continue/mcpServers/c.yaml
.kiro/steering/a.md .kiro/specs/b/tasks.md .kiro/hooks/c.kiro.hook .kiro/settings/mcp.json
.agent/rules/a.md .agent/workflows/b.md .agent/skills/s/SKILL.md
.agents/skills/s/SKILL.md .agents/skills/s/x.md .agents/rules/a.md AGENTS.md
.qwen/settings.json .qwen/commands/a.md QWEN.md .qwen/agents/b.md
.openhands/microagents/repo.md .goosehints .rules
WARP.md CRUSH.md AGENT.md replit.md .aider.conf.yml
AGENTS.md AGENTS.override.md CLAUDE.local.md
.mcp.json .cursor/mcp.json .vscode/mcp.json .codex/config.toml .gemini/settings.json opencode.json .roo/mcp.json
.treadle/config.toml .treadle/commands/a.md .treadle/skills/s/SKILL.md .treadle/policy.toml
a/AGENTS.md a/b/CLAUDE.md a/b/c/GEMINI.md
.claude/rules/a.txt .claude/rules/b.json .cursor/rules/c.json
.cursor/commands/a.txt .cursor/notepads/b.md .cursor/cli.json
.qoder/rules/a.md .opencode/tool/b.ts .opencode/themes/c.json
"""
FOLDERS = [line.split() for line in LAYOUTS.replace(" +\n", " ").strip().splitlines()]
"""A line is a folder; one that ends with a plus goes on in the next."""


def content_of(name: str) -> str:
    """Give a text in the shape that a file of this name has."""
    if name in CONTENTS:
        return CONTENTS[name]
    if name.endswith(("mcp.json", "mcp_config.json")):
        return json.dumps(SERVER)
    if name.endswith("SKILL.md"):
        return f"---\nname: {Path(name).parent.name}\ndescription: d\n---\nDo it."
    if "/agents/" in name or "/agent/" in name:
        return f"---\nname: {Path(name).stem}\ndescription: d\n---\nDo it."
    if name.endswith((".json", ".jsonc")):
        return "{}"
    if name.endswith(".toml"):
        return 'prompt = "Fix."' if "/commands/" in name else ""
    return f"Text of {name}."


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "work" / ".git").mkdir(parents=True)
    return (tmp_path / "work").resolve()


def told(trust: SessionTrust) -> Iterator[str]:
    """Name the files that are used, and those that a person is told of with a reason."""
    rules = [*find_rules(trust)]
    for below in sorted(path for path in trust.workspace.rglob("*") if path.is_dir()):
        rules += nested_rules(trust, below)
    for rule in rules:
        assert rule.blocks or rule.unused
        yield rule.origin
        yield from (block.origin for block in rule.blocks)
    yield from (str((skill.folder / "SKILL.md").relative_to(trust.workspace)) for skill in find_skills(trust))
    yield from (text.origin for text in find_texts(trust))
    agents, notices = read_agents(trust, Path.home())
    assert notices == ()
    yield from (agent.origin for agent in agents.values())
    servers = configured_servers(trust)
    assert [one.problem for one in servers.servers if one.problem] == []
    yield from (item.path for item in trust.items if item.kind in ("servers", "settings", "session hook"))
    yield from (line.file for line in list_hooks(load_settings({}, workspace=trust.workspace), trust) if line.why_not)


@pytest.mark.parametrize("names", FOLDERS, ids=lambda names: " ".join(names)[:60])
def test_each_file_of_an_agent_is_used_or_named_with_why_not(folder: Path, names: list[str]) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content_of(name))
    trust = session_trust(folder, once=True)
    known = set(told(trust))
    unused = unused_files(trust)
    left = [name for name in names if name not in known and not _is_told(name, [one.place for one in unused])]
    of_skills = [name for name in left if any((parent / "SKILL.md").exists() for parent in (folder / name).parents)]
    code = [name for name in left if name.endswith((".sh", ".py", ".ts"))]
    elsewhere = [name for name in left if name.startswith((".github/PULL", ".claude-plugin/"))]
    read_me = [name for name in left if name.endswith("README.md")]
    assert sorted(left) == sorted({*of_skills, *code, *elsewhere, *read_me})
    listed = rules_command(trust)
    assert all(one.why in listed and one.place in listed for one in unused)


def _is_told(name: str, places: list[str]) -> bool:
    return any(name == place or (place.endswith("/") and name.startswith(place)) for place in places)


def _groups(event: str, **more: object) -> str:
    return json.dumps({**more, "hooks": {"enabled": True, event: [{"matcher": "m", "hooks": [{"command": "x"}]}]}})


def _flat(event: str) -> str:
    return json.dumps({"version": 1, "hooks": {event: [{"command": "x"}]}})


FOREIGN_HOOKS = [
    (".cursor/hooks.json", _flat("beforeShellExecution"), "Cursor", '[[hooks.PreToolUse]] with matcher = "Bash"'),
    (".cursor/hooks.json", _flat("afterFileEdit"), "Cursor", '[[hooks.PostToolUse]] with matcher = "Edit|Write"'),
    (".cursor/hooks.json", _flat("stop"), "Cursor", "[[hooks.Stop]] in"),
    (".cursor/hooks.json", _flat("subagentStart"), "Cursor", "Treadle has no such event"),
    (".cursor/hooks.json", '{"hooks": ', "Cursor", "it cannot be read"),
    (".gemini/settings.json", _groups("BeforeTool"), "Gemini", "[[hooks.PreToolUse]] in"),
    (".gemini/settings.json", _groups("BeforeModel"), "Gemini", "Treadle has no such event"),
    (".gemini/extensions/e/hooks/hooks.json", _groups("AfterAgent"), "Gemini", "[[hooks.Stop]] in"),
    (".clinerules/hooks/PreToolUse", "#!/bin/sh", "Cline", "[[hooks.PreToolUse]] in"),
    (".clinerules/hooks/TaskStart.ps1", "exit 0", "Cline", "[[hooks.SessionStart]] in"),
    (".codex/hooks.json", _groups("UserPromptSubmit"), "Codex", "[[hooks.UserPromptSubmit]] in"),
    (".codex/config.toml", '[[hooks.PreToolUse]]\nmatcher = "m"\n', "Codex", "[[hooks.PreToolUse]] in"),
    (".windsurf/hooks.json", _flat("pre_run_command"), "Windsurf", '[[hooks.PreToolUse]] with matcher = "Bash"'),
    (".github/hooks/a.json", _flat("userPromptSubmitted"), "Copilot", "[[hooks.UserPromptSubmit]] in"),
    (".qwen/settings.json", _groups("SessionEnd"), "Qwen Code", "[[hooks.SessionEnd]] in"),
    (".augment/settings.json", _groups("PostToolUse"), "Augment", "[[hooks.PostToolUse]] in"),
    (".factory/settings.json", _groups("PreToolUse"), "Factory", "[[hooks.PreToolUse]] in"),
    (".kiro/hooks/a.kiro.hook", "{}", "Kiro", "[[hooks.EVENT]] in"),
    (".kiro/agents/a.json", _flat("agentSpawn"), "Kiro", "[[hooks.SessionStart]] in"),
    (".amazonq/cli-agents/a.json", _flat("userPromptSubmit"), "Amazon Q", "[[hooks.UserPromptSubmit]] in"),
    (".opencode/plugin/a.ts", "export const A = 1", "OpenCode", "[[hooks.EVENT]] in"),
]


@pytest.mark.parametrize(("name", "content", "program", "said"), FOREIGN_HOOKS)
def test_a_hook_of_another_program_is_named_with_why_it_does_not_run_and_what_to_do(
    folder: Path, name: str, content: str, program: str, said: str
) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(content)
    for trusted in (True, False):
        trust = session_trust(folder, once=trusted)
        (line,) = list_hooks(load_settings({}, workspace=folder), trust)
        assert (line.file, line.active) == (name, False)
        assert line.why_not.startswith(f"a hook of {program}, and Treadle runs only those of its own form")
        assert said in line.why_not
        assert line.why_not in hook_text(line)


def test_there_are_as_many_folders_as_were_looked_at() -> None:
    assert len(FOLDERS) >= 47

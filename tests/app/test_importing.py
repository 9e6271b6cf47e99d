"""What is taken over from other agents: allows no wider than "always allow", denials no weaker, nothing hostile."""

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.app.compose import tool_specs
from treadle.app.config.places import servers_file
from treadle.app.importing.foreign_permissions import ImportContext, Permission, permission_of
from treadle.app.importing.foreign_programs import MOST_IMPORTED_RULES, import_plan
from treadle.app.importing.plan import ImportPlan, ImportState, empty_plan, plan_lines, take_over
from treadle.app.importing.transcripts import MOST_SETTINGS
from treadle.app.servers.approved import ApprovedServer
from treadle.app.session.commands.judging import policy_context
from treadle.mcp.declaring import slug_of, tool_name
from treadle.policy.allowances import decide_and_offer, rule_of
from treadle.policy.decide import decide
from treadle.policy.rules import Rule, Ruleset
from treadle.protocol.permissions import Mode, Standing, Verdict
from treadle.protocol.tools import Access, FetchUrl, ReadPath, Risk, RunCommand, ToolSpec, ToolTraits, WritePath

SPECS = {spec.name: spec for spec in tool_specs()}
ASK = Verdict.REQUIRE_USER_CONFIRMATION


@pytest.fixture(scope="module")
def where(tmp_path_factory: pytest.TempPathFactory) -> ImportContext:
    root = tmp_path_factory.mktemp("work").resolve()
    home = tmp_path_factory.mktemp("home").resolve()
    context = policy_context(str(root), Standing(mode=Mode.ASK), trusted=True, home=str(home), rules=Ruleset())
    return ImportContext(context, str(home / ".claude"), SPECS)


def judged(where: ImportContext, rules: Sequence[Rule], access: Access) -> Verdict:
    from dataclasses import replace

    context = replace(where.context, mode=Mode.FULL, rules=Ruleset(rules=tuple(rules)))
    return decide(SPECS["execute_command"], {}, (access,), context).verdict


def run(where: ImportContext, command: str) -> RunCommand:
    return RunCommand(command=command, cwd=where.root)


WORDS = """
    git npm cargo test run build push status origin -x --all curl rm -rf . make sh -c 'a_b' python3 sudo pytest * FOO=1
    ~/x $HOME && ; a.py
"""
COMMANDS = st.lists(st.sampled_from(WORDS.split()), min_size=1, max_size=4).map(" ".join)
ENDINGS = st.sampled_from(["", ":*", " *", "*"])


@given(COMMANDS, ENDINGS)
def test_an_allowed_command_is_never_wider_than_what_always_allow_offers(
    where: ImportContext, command: str, ending: str
) -> None:
    permission = permission_of(f"Bash({command}{ending})", Verdict.ALLOW, where)
    if not permission.rules:
        assert permission.note
        return
    (rule,) = permission.rules
    assert rule.workspace == where.root
    said, command = f"{command}{ending}", f"{command}{ending}".removesuffix(":*").removesuffix(" *")
    decision = decide_and_offer(SPECS["execute_command"], {}, (run(where, command),), where.context)
    offered = [rule_of(one) for one in decision.offers]
    assert any(rule.argv[: len(one.argv)] == one.argv and (rule.exact or not one.exact) for one in offered)
    assert rule.exact or said != command


@given(COMMANDS, st.sampled_from(["", ":*", " *"]), st.sampled_from(["", " more", " a b"]))
def test_a_denied_command_is_denied_with_whatever_follows_or_left_out_with_a_reason(
    where: ImportContext, command: str, ending: str, more: str
) -> None:
    permission = permission_of(f"Bash({command}{ending})", Verdict.DENY, where)
    if not permission.rules:
        assert permission.note
    elif "*" not in command:
        line = command + (more if ending else "")
        assert judged(where, permission.rules, run(where, line)) is Verdict.DENY


NAMES = st.sampled_from(["a.py", "src", ".env", "x", "deep"])


@given(st.lists(NAMES, min_size=1, max_size=3), st.sampled_from(["", "./", "//", "~/", "**/"]), st.booleans())
def test_a_denied_path_is_denied_and_so_is_all_below(
    where: ImportContext, names: list[str], lead: str, below: bool
) -> None:
    name = "/".join(names)
    for tool, of in (("Read", ReadPath), ("Edit", WritePath)):
        permission = permission_of(f"{tool}({lead}{name})", Verdict.DENY, where)
        base = {"//": "/", "~/": f"{where.context.home}/"}.get(lead, f"{where.root}/")
        path = f"{base}{name}{'/inner' if below else ''}"
        assert judged(where, permission.rules, of(path=path)) is Verdict.DENY


@given(st.text(max_size=30) | st.integers() | st.lists(st.integers()), st.sampled_from(Verdict))
def test_any_entry_ends_in_rules_or_in_a_reason(where: ImportContext, entry: object, verdict: Verdict) -> None:
    for said in (entry, f"Bash({entry})", f"Read({entry})", f"WebFetch(domain:{entry})"):
        permission = permission_of(said, verdict, where)
        assert permission.rules or permission.note
        assert all(rule.verdict is verdict for rule in permission.rules)


def found(entry: str, verdict: Verdict, where: ImportContext) -> Permission:
    return permission_of(entry, verdict, where)


@pytest.mark.parametrize(
    "entry",
    [
        *(
            "Bash",
            "Bash(*)",
            "Bash(git:*)",
            "Bash(curl:*)",
            "Bash(sh -c:*)",
            "Bash(git status && rm x)",
            "Bash(sudo:*)",
        ),
        *("Read(src/**)", "Edit", "Edit(**)", "WebFetch", "WebFetch(domain:*.a.com)", "mcp__a__b", "Task"),
        "Bash(ls\u202e)",
    ],
)
def test_what_cannot_be_allowed_narrowly_is_left_out(where: ImportContext, entry: str) -> None:
    assert found(entry, Verdict.ALLOW, where).rules == ()


@pytest.mark.parametrize(
    ("entry", "access", "verdict"),
    [
        ("Bash", "ls", ASK),
        ("Bash(git push:*)", "git push -f origin", Verdict.DENY),
        ("WebFetch(domain:a.com)", "https://a.com/x", Verdict.DENY),
        ("WebFetch(domain:*.a.com)", "https://b.a.com/x", Verdict.DENY),
        ("Bash(git push * --force)", "git push origin --force", ASK),
    ],
)
def test_denials_and_questions_hold_in_every_mode(
    where: ImportContext, entry: str, access: str, verdict: Verdict
) -> None:
    rules = found(entry, verdict, where).rules
    one = FetchUrl(url=access) if access.startswith("https") else run(where, access)
    assert judged(where, rules, one) is verdict


def tool_of_server(name: str, risk: Risk = Risk.EXECUTE) -> ToolSpec:
    parameters: dict[str, Any] = {"type": "object", "properties": {}}
    return ToolSpec(name=name, description="x", parameters=parameters, traits=ToolTraits(), risk=risk)


def with_servers(where: ImportContext) -> ImportContext:
    """Three servers: two of which names may be those of one, and one whose name is written otherwise here."""
    tools = {
        "gh": {"list": "mcp__gh__list", "list__all": "mcp__gh__list__all", "api__get": "mcp__gh__api__get"},
        "gh__api": {"get": "mcp__gh__api__get_1a2b3c", "put": "mcp__gh__api__put"},
        "my__own": {"do_it": "mcp__my_own__do_it"},
    }
    servers = tuple(
        ApprovedServer(
            name=name,
            slug=name.replace("my__", "my_"),
            tools={one: tool_of_server(full, Risk.READ if one == "list" else Risk.REMOTE) for one, full in of.items()},
        )
        for name, of in tools.items()
    )
    return replace(where, servers=servers)


@pytest.mark.parametrize(
    ("entry", "names"),
    [
        ("mcp__gh__list__all", {"mcp__gh__list__all"}),
        ("mcp__gh", {"mcp__gh__list__all", "mcp__gh__api__get"}),
        ("mcp__gh__*", {"mcp__gh__list__all", "mcp__gh__api__get"}),
        ("mcp__gh__api__put", {"mcp__gh__api__put"}),
        ("mcp__gh__api", {"mcp__gh__api__get_1a2b3c", "mcp__gh__api__put"}),
        ("mcp__my__own__do_it", {"mcp__my_own__do_it"}),
        *((entry, set[str]()) for entry in ("mcp__gh__api__get", "mcp__gh__list", "mcp__gh__list__*", "mcp__gh__a*")),
        *(
            (entry, set[str]())
            for entry in ("mcp__*", "mcp__", "mcp____", "mcp__gone__x", "mcp__gh(x)", "mcp__gh__list(*)")
        ),
    ],
)
def test_an_allowed_tool_of_a_server_is_exactly_what_always_allow_offers(
    where: ImportContext, entry: str, names: set[str]
) -> None:
    where = with_servers(where)
    permission = found(entry, Verdict.ALLOW, where)
    assert ({rule.tool for rule in permission.rules}, bool(permission.note)) == (names, True)
    specs = {spec.name: spec for server in where.servers for spec in server.tools.values()}
    for rule in permission.rules:
        (offer,) = decide_and_offer(specs[rule.tool], {}, (), where.context).offers
        assert (rule.tool, rule.tool_digest) == (offer.tool, offer.tool_digest)


@pytest.mark.parametrize("verdict", [Verdict.DENY, ASK])
@pytest.mark.parametrize(
    ("entry", "names"),
    [
        ("mcp__gh__list", {"mcp__gh__list"}),
        ("mcp__gh", {"mcp__gh__list", "mcp__gh__list__all", "mcp__gh__new"}),
        ("mcp__gh__*", {"mcp__gh__list", "mcp__gh__list__all", "mcp__gh__new"}),
        ("mcp__gh__li*", {"mcp__gh__list", "mcp__gh__list__all"}),
        ("mcp__gh__api__get", {"mcp__gh__api__get", "mcp__gh__api__get_1a2b3c"}),
        ("mcp__gh__api", {"mcp__gh__api", "mcp__gh__api__put"}),
        ("mcp__my__own", {"mcp__my_own__do_it"}),
        ("mcp__*", {"mcp__gh__list", "mcp__my_own__do_it"}),
        ("mcp__a-server-with-a-long-name__x", {tool_name(slug_of("a-server-with-a-long-name", {}), "x", {})}),
    ],
)
def test_a_denied_tool_of_a_server_is_denied_under_each_name_that_it_may_have(
    where: ImportContext, verdict: Verdict, entry: str, names: set[str]
) -> None:
    where = with_servers(where)
    rules = found(entry, verdict, where).rules
    context = replace(where.context, mode=Mode.FULL, rules=Ruleset(rules=rules))
    assert {decide(tool_of_server(name), {}, (), context).verdict for name in names} == {verdict}
    other = decide(tool_of_server("mcp__other__x"), {}, (), context).verdict
    assert other is (verdict if entry == "mcp__*" else Verdict.ALLOW)


def test_a_path_whose_beginning_is_not_clear_is_denied_everywhere_and_allowed_nowhere(where: ImportContext) -> None:
    rules = found("Read(/a.txt)", Verdict.DENY, where).rules
    for folder in (where.root, where.own, str(Path(where.own).parent)):
        assert judged(where, rules, ReadPath(path=f"{folder}/a.txt")) is Verdict.DENY
    assert found("Read(/a.txt)", Verdict.ALLOW, where).rules == ()


class Home:
    """A home of Claude Code, Cline and Codex, and Treadle's own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.work = folder / "work"
        self.work.mkdir()

    def write(self, name: str, value: Any) -> Path:
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(value if isinstance(value, str) else json.dumps(value))
        return file

    def plan(self, program: str = "claude-code") -> ImportPlan:
        return import_plan(program, self.work)

    def states(self, program: str = "claude-code") -> dict[str, str]:
        return {item.what: str(item.state) for item in self.plan(program).items}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "treadle"))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    return Home(tmp_path)


SERVERS = {"mcpServers": {"gh": {"command": "npx", "args": ["--token=sk-1"], "env": {"TOKEN": "ghp_1"}}}}


def test_secrets_of_servers_are_kept_for_the_owner_alone_and_never_shown(home: Home) -> None:
    home.write(".claude.json", SERVERS)
    plan = home.plan()
    shown = "\n".join(plan_lines(plan, home.folder))
    assert "TOKEN" in shown
    assert "ghp_1" not in shown
    assert "sk-1" not in shown
    assert take_over(plan) == (servers_file(),)
    assert json.loads(servers_file().read_text()) == SERVERS
    assert servers_file().stat().st_mode & 0o777 == 0o600


def test_what_treadle_has_already_stays(home: Home) -> None:
    mine = {"mcpServers": {"gh": {"command": "mine"}}, "other": 1}
    home.write("treadle/mcp.json", mine)
    home.write("treadle/rules/claude-code.md", "mine")
    home.write(".claude.json", SERVERS)
    home.write(".claude/CLAUDE.md", "theirs")
    states = home.states()
    assert set(states.values()) == {ImportState.CONFLICT}
    assert take_over(home.plan()) == ()
    assert json.loads(servers_file().read_text()) == mine


def test_importing_twice_changes_nothing_more(home: Home) -> None:
    home.write(".claude.json", SERVERS)
    home.write(".claude/CLAUDE.md", "Use tabs.")
    allow = ["Bash(npm run test:*)", "WebFetch(domain:docs.rs)"]
    home.write(".claude/settings.json", {"permissions": {"allow": allow, "deny": ["Read(.env)"], "ask": ["Bash"]}})
    assert set(home.states().values()) == {ImportState.TAKEN}
    take_over(home.plan())
    files = {file: file.read_bytes() for file in (home.folder / "treadle").rglob("*") if file.is_file()}
    assert set(home.states().values()) == {ImportState.PRESENT}
    assert take_over(home.plan()) == ()
    assert files == {file: file.read_bytes() for file in (home.folder / "treadle").rglob("*") if file.is_file()}


@pytest.mark.parametrize("broken", ["{", "[]", '{"permissions": 7}', '{"permissions": {"allow": {}}}', "[" * 100_000])
def test_settings_that_are_none_are_named_and_the_rest_goes_on(home: Home, broken: str) -> None:
    home.write(".claude/settings.json", broken)
    home.write(".claude/CLAUDE.md", "Use tabs.")
    states = list(home.states().values())
    assert sorted(states) == [ImportState.LEFT_OUT, ImportState.TAKEN]


def test_links_in_a_circle_pipes_and_huge_files_are_named_without_being_read(home: Home) -> None:
    own = home.folder / ".claude"
    own.mkdir()
    (own / "CLAUDE.md").symlink_to(own / "CLAUDE.md")
    os.mkfifo(home.folder / ".claude.json")
    with (own / "settings.json").open("wb") as stream:
        stream.truncate(50 * 1024 * 1024)
    notes = [item.note for item in home.plan().items]
    assert "Too many levels of symbolic links" in notes
    assert "it is not a file" in notes
    assert f"it is larger than {MOST_SETTINGS // 1024:,} KiB" in notes


def test_rules_that_hide_something_are_left_out_and_names_steer_no_terminal(home: Home) -> None:
    home.write(".claude/CLAUDE.md", "Use tabs.\x1b[2J")
    home.write(".claude.json", {"mcpServers": {"\x1b]0;x\x07": {"command": "x"}, "y": {"command": "a\0b"}, "z": []}})
    plan = home.plan()
    assert [item.state for item in plan.items] == [ImportState.LEFT_OUT] * 4
    assert "\x1b" not in "".join(plan_lines(plan, home.folder))


def test_a_folder_that_is_not_trusted_gives_no_permissions(home: Home) -> None:
    home.write("work/.claude/settings.local.json", {"permissions": {"allow": ["Bash(npm run x)"]}})
    assert home.states() == {"permissions for this folder": "left out"}


def test_cline_gives_rules_and_servers_and_its_approvals_are_explained(home: Home) -> None:
    home.write("Documents/Cline/Rules/style.md", "Use tabs.")
    home.write(".config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json", SERVERS)
    home.write(".cline/data/globalState.json", {"autoApprovalSettings": {"actions": {"editFiles": True, "x": False}}})
    assert sorted(home.states("cline").values()) == ["left out", "take", "take"]
    take_over(home.plan("cline"))
    assert (home.folder / "treadle" / "rules" / "cline-style.md").read_text() == "Use tabs."


def test_codex_gives_rules_and_servers_in_the_form_of_treadle(home: Home) -> None:
    home.write(".codex/AGENTS.md", "Use tabs.")
    home.write(
        ".codex/config.toml",
        'approval_policy = "never"\n[projects."/p"]\ntrust_level = "trusted"\n[mcp_servers.a]\nurl = "https://a.com/x"\n'
        'bearer_token_env_var = "KEY"\nenabled = false\n',
    )
    home.write(".codex/sessions/2026/01/01/rollout-1.jsonl", "")
    plan = home.plan("codex")
    take_over(plan)
    assert [str(item.state) for item in plan.items] == ["take", "take", "left out", "left out"]
    server = {"url": "https://a.com/x", "headers": {"Authorization": "Bearer ${KEY}"}, "disabled": True}
    assert json.loads(servers_file().read_text()) == {"mcpServers": {"a": server}}
    assert any("sessions: 1." in note for note in plan.notes)


def test_what_codex_trusts_and_what_it_does_not_is_left_out_with_its_own_reason(home: Home) -> None:
    projects = {"/p": 'trust_level = "trusted"', "/q": 'trust_level = "untrusted"', "/r": "other = 1"}
    text = "".join(f'[projects."{name}"]\n{said}\n' for name, said in projects.items())
    home.write(".codex/config.toml", f'sandbox_mode = "read-only"\napproval_policy = "else"\nprojects.s = 1\n{text}')
    assert [(item.what, str(item.state), item.note) for item in home.plan("codex").items] == [
        ("approval_policy = else", "left out", "choose the mode yourself (docs/policy.md)"),
        ("sandbox_mode = read-only", "left out", "choose it yourself: `treadle config set mode plan`"),
        ("trust in /p", "left out", "Treadle trusts what you have seen: `treadle trust DIR`"),
        ("no trust in /q", "left out", "Treadle trusts no folder before you say so"),
    ]


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=8),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
        max_leaves=12,
    )
)
def test_servers_of_any_shape_are_taken_or_left_out(value: Any) -> None:
    from treadle.app.importing.plan import plan_servers

    plan = empty_plan()
    plan_servers(plan, Path("/f"), {"a": value, "b": {"command": "x", "env": value}, "c": {"args": value, "url": "u"}})
    assert len(plan.items) == 3
    assert all(isinstance(server.get("env", {}), dict) for server in plan.servers.values())


def test_many_permissions_never_make_a_rule_file_that_is_too_large_to_be_used(home: Home) -> None:
    deny = [f"Bash(run {'x' * 300} {number})" for number in range(900)]
    home.write(".claude/settings.json", {"permissions": {"deny": deny}})
    plan = home.plan()
    assert {item.note for item in plan.items if item.state is ImportState.LEFT_OUT} == {
        "the rule file would become too large"
    }
    (file,) = take_over(plan)
    assert 100 * 1024 < file.stat().st_size <= MOST_IMPORTED_RULES
    assert policy_context(str(home.work), Standing(mode=Mode.ASK), trusted=True).rules.problems == ()
    assert take_over(home.plan()) == ()

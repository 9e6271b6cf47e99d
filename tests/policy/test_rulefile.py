"""Rule files: read whole or not at all, with their examples tested."""

import re
from pathlib import Path

import pytest

from tests.policy.views import ROOT, context
from treadle.policy.allowances import suggest_rules
from treadle.policy.decide import decide
from treadle.policy.findings import PathOp
from treadle.policy.rulefile import RuleFile, RuleFileError, load_rules, read_rules
from treadle.policy.rules import Rule, Scope
from treadle.protocol.permissions import Verdict
from treadle.protocol.tools import Access, FetchUrl, ReadPath, Risk, RunCommand, ToolSpec, ToolTraits, WritePath

_GOOD = """
version = 1

[[rule]]
id = "docs"
verdict = "allow"
path = "docs/**"
op = "write"
reason = "docs are mine"
match = ["docs/a/b.md"]
not_match = ["src/a.py", "docs-old/a"]

[[rule]]
id = "wiki"
verdict = "ask"
host = ".example.com"
match = ["https://wiki.example.com/x", "a.example.com"]
not_match = ["https://example.com/", "https://evilexample.com/"]
"""
SHELL = ToolSpec(name="execute_command", description="", parameters={}, traits=ToolTraits(), risk=Risk.EXECUTE)


def _file(text: str) -> RuleFile:
    return RuleFile(name="rules.toml", text=text, scope=Scope.USER)


def test_a_rule_file_gives_its_rules_with_file_and_line() -> None:
    assert read_rules(_file(_GOOD)) == [
        Rule(
            id="docs",
            verdict=Verdict.ALLOW,
            path="docs/**",
            op=PathOp.WRITE,
            reason="docs are mine",
            source="rules.toml:4",
            match=("docs/a/b.md",),
            not_match=("src/a.py", "docs-old/a"),
        ),
        Rule(
            id="wiki",
            verdict=Verdict.REQUIRE_USER_CONFIRMATION,
            host=".example.com",
            source="rules.toml:13",
            match=("https://wiki.example.com/x", "a.example.com"),
            not_match=("https://example.com/", "https://evilexample.com/"),
        ),
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("version = 1\n[[rule]", "rules.toml:"),
        ("[[rule]]\nid='a'\nverdict='deny'\ntool='x'", "version = 1"),
        ("version = 1\nrules = []", "nothing else"),
        ("version = 1\nrule = [{id='a', verdict='deny', tool='x'}]", "its own [[rule]] line"),
        (
            "version = 1\n[[rule]]\nid='a'\nverdict='deny'\ntool='x'\nhosts='y'",
            "rules.toml:2: Object contains unknown field `hosts`",
        ),
        ("version = 1\n[[rule]]\nverdict='deny'\ntool='x'", "missing required field `id`"),
        ("version = 1\n[[rule]]\nid='a'\nverdict='maybe'\ntool='x'", "Invalid enum value 'maybe' - at `$.verdict`"),
        ("version = 1\n[[rule]]\nid='a'\nverdict='deny'", "matches nothing"),
        ("version = 1\n[[rule]]\nid='a'\nverdict='deny'\nargv='npm test'", "Expected `array`, got `str` - at `$.argv`"),
        ("version = 1\n[[rule]]\nid='a'\nverdict='deny'\nargv=['npm']", "needs an example"),
        ("version = 1\n[[rule]]\nid='a'\nverdict='deny'\nargv=['npm']\nmatch=['yarn x']", "does not match its example"),
        (
            f"version = 1\n[[rule]]\nid='a'\nverdict='deny'\nargv=['npm']\nmatch=['npm {'a ' * 7000}']",
            "does not match its example",
        ),
        (
            "version = 1\n[[rule]]\nid='a'\nverdict='deny'\nargv=['npm']\nmatch=['npm x']\nnot_match=['npm y']",
            "not_match",
        ),
    ],
)
def test_a_file_with_a_mistake_is_refused_with_the_place(text: str, problem: str) -> None:
    with pytest.raises(RuleFileError) as caught:
        read_rules(_file(text))
    assert problem in str(caught.value)


def test_the_last_good_text_of_a_broken_file_stays_in_force() -> None:
    loaded = load_rules([_file("version = 2")], {"rules.toml": _GOOD})
    assert [rule.id for rule in loaded.rules] == ["docs", "wiki"]
    assert len(loaded.problems) == 1


def test_the_version_of_the_rules_changes_with_them() -> None:
    versions = {
        load_rules([_file(text)]).version for text in (_GOOD, _GOOD.replace("docs/**", "doc?/**"), "version = 1")
    }
    assert len(versions) >= 2


def _offered(access: Access) -> list[tuple[tuple[str, ...], bool, str, str]]:
    decision = decide(SHELL, {}, (access,), context())
    rules = suggest_rules(decision, SHELL, (access,), context())
    return [(rule.argv, rule.exact, rule.path, rule.host) for rule in rules]


@pytest.mark.parametrize(
    ("access", "expected"),
    [
        (RunCommand(command="npm test -- -x", cwd=ROOT), [(("npm", "test"), False, "", "")]),
        (RunCommand(command="ls && frobnicate src", cwd=ROOT), [(("frobnicate", "src"), True, "", "")]),
        (RunCommand(command="cargo test a 2>&1 | tail -n 3", cwd=ROOT), [(("cargo", "test"), False, "", "")]),
        (
            RunCommand(command="cargo test --manifest-path a.toml", cwd=ROOT),
            [(("cargo", "test", "--manifest-path", "a.toml"), True, "", "")],
        ),
        (RunCommand(command="cargo test --config a.toml", cwd=ROOT), []),
        (RunCommand(command="git push origin main", cwd=ROOT), [(("git", "push", "origin", "main"), True, "", "")]),
        (
            RunCommand(command="make test && make lint", cwd=ROOT),
            [(("make", "test"), True, "", ""), (("make", "lint"), True, "", "")],
        ),
        (RunCommand(command="npm run build", cwd=ROOT), [(("npm", "run", "build"), True, "", "")]),
        (
            RunCommand(command="python3 -m unittest -q", cwd=ROOT),
            [(("python3", "-m", "unittest", "-q"), True, "", "")],
        ),
        (WritePath(path=f"{ROOT}/a"), [((), False, f"{ROOT}/a", "")]),
        (ReadPath(path="/etc/hosts"), [((), False, "/etc/hosts", "")]),
        (FetchUrl(url="https://example.com/x?y"), [((), False, "", "example.com")]),
    ],
)
def test_always_allow_offers_the_narrowest_rule(
    access: Access, expected: list[tuple[tuple[str, ...], bool, str, str]]
) -> None:
    assert _offered(access) == expected


@pytest.mark.parametrize(
    "line",
    ["python3 -m http.server", "python3 -I -m unittest", "./python3 -m unittest",
     "python3 x.py", "bash x.sh", "env A=1 npm test", "sudo ls", "curl https://example.com", "npx x", "git -c a=b log",
     "npm test > out", "rm x", "xargs npm test", "cat 'unclosed", "rm -rf ~", "make $X", "git push", "git push origin",
     "git -C sub fetch", "git rebase main", "npm exec x", "npm --prefix sub test", "pnpm dlx x", "uv run x", "go run .",
     "docker run x", "kubectl exec x -- ls", "./run.sh", "/opt/run x", "X=1 npm test", "frobnicate < in > out",
     "frobnicate <<E\nx\nE", "cat x | frobnicate", "vim x", "psql -c 'select 1'", "frobnicate *.x", "poetry run x",
     "timeout 5 npm test", "(cd .. && npm test)", "npm test &", "f() { npm test; }; f", "frobnicate $(npm test)"],
)  # fmt: skip
def test_always_allow_offers_nothing_that_would_allow_anything(line: str) -> None:
    assert _offered(RunCommand(command=line, cwd=ROOT)) == []


def test_what_is_offered_allows_the_same_call() -> None:
    access = RunCommand(command="frobnicate src", cwd=ROOT)
    first = decide(SHELL, {}, (access,), context())
    rules = suggest_rules(first, SHELL, (access,), context())
    loaded = load_rules([])
    second = decide(SHELL, {}, (access,), context(rules=type(loaded)(rules=rules)))
    assert (first.verdict, second.verdict) == (Verdict.REQUIRE_USER_CONFIRMATION, Verdict.ALLOW)


def test_the_rules_shown_in_the_documentation_can_be_read() -> None:
    page = Path(__file__).resolve().parents[2] / "docs" / "policy.md"
    examples = re.findall(r"```toml\n(.*?)```", page.read_text(), re.DOTALL)
    assert [[rule.id for rule in read_rules(_file(text))] for text in examples] == [
        ["tests", "generated", "wiki", "no-browser"]
    ]

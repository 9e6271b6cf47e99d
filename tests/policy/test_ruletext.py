"""Rules that are written for the user read back as what they were, and match what they show."""

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.policy.views import ROOT, MemoryView, context
from treadle.policy.allowances import allowance_of, decide_and_offer, rule_of, suggest_rules, with_allowances
from treadle.policy.decide import decide
from treadle.policy.findings import PathOp
from treadle.policy.marks import fits_glob
from treadle.policy.rulefile import RuleFile, load_rules, render_rule, render_rules, with_examples
from treadle.policy.rules import Rule, Scope, covers, listed_prefix
from treadle.protocol.permissions import Allowance, Verdict
from treadle.protocol.tools import Access, FetchUrl, Risk, RunCommand, ToolSpec, ToolTraits, WritePath

SHELL = ToolSpec(name="execute_command", description="", parameters={}, traits=ToolTraits(), risk=Risk.EXECUTE)
_WORDS = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0\1\2\4"), min_size=1, max_size=12)
_PLAIN_WORDS = st.text("abc-_./:@=+,'\"\\ $#*?", min_size=1, max_size=8)


def _read(text: str, scope: Scope = Scope.USER) -> tuple[Rule, ...]:
    loaded = load_rules([RuleFile(name="x", text=text, scope=scope)])
    assert loaded.problems == ()
    return loaded.rules


@settings(max_examples=300)
@given(st.lists(_WORDS, min_size=1, max_size=5), st.booleans(), _WORDS)
def test_a_rule_over_any_words_reads_back_or_is_not_written(argv: list[str], exact: bool, reason: str) -> None:
    rule = Rule(id="r", verdict=Verdict.ALLOW, tool="t", argv=tuple(argv), exact=exact, reason=reason)
    written = with_examples(rule)
    if written is not None:
        (read,) = _read(render_rules([written]))
        assert (read.argv, read.exact, read.reason, read.match) == (
            rule.argv,
            exact,
            reason,
            written.match,
        )


@settings(max_examples=200)
@given(st.lists(_PLAIN_WORDS, max_size=4))
def test_what_is_offered_for_a_command_can_be_written_and_allows_it(words: list[str]) -> None:
    import shlex

    access: Access = RunCommand(command=shlex.join(["frobnicate", *words]), cwd=ROOT)
    decision = decide(SHELL, {}, (access,), context())
    for rule in suggest_rules(decision, SHELL, (access,), context()):
        written = with_examples(rule)
        assert written is not None
        again = load_rules([RuleFile(name="x", text=render_rules([written]), scope=Scope.USER)])
        assert decide(SHELL, {}, (access,), context(rules=again)).verdict is Verdict.ALLOW


def test_paths_and_hosts_are_written_with_examples_for_and_against() -> None:
    accesses = (WritePath(path=f"{ROOT}/src/a b.py"), FetchUrl(url="https://docs.example.com/x"))
    rules = [
        rule
        for access in accesses
        for rule in suggest_rules(decide(SHELL, {}, (access,), context()), SHELL, (access,), context())
    ]
    assert [(rule.match, rule.not_match) for rule in map(with_examples, rules) if rule is not None] == [
        ((f"{ROOT}/src/a b.py",), (f"{ROOT}/src/not-a b.py",)),
        (("https://docs.example.com/",), ("https://not-docs.example.com/",)),
    ]


def test_a_file_whose_name_holds_a_wildcard_is_offered_no_rule() -> None:
    access = WritePath(path=f"{ROOT}/a*b")
    assert suggest_rules(decide(SHELL, {}, (access,), context()), SHELL, (access,), context()) == ()


@settings(max_examples=200)
@given(st.lists(_PLAIN_WORDS, max_size=3), st.sampled_from(["", "read", "write"]), st.booleans(), _PLAIN_WORDS)
def test_what_a_person_allowed_is_the_rule_that_was_offered(argv: list[str], op: str, exact: bool, text: str) -> None:
    allowance = Allowance(id=text, tool="t", argv=tuple(argv), exact=exact, path=text, op=op, host=text)
    assert allowance_of(rule_of(allowance)) == allowance


def test_allowing_more_in_a_session_is_no_other_policy() -> None:
    access: Access = RunCommand(command="frobnicate x", cwd=ROOT)
    before = decide_and_offer(SHELL, {}, (access,), context())
    rules = with_allowances(context().rules, before.offers)
    after = decide_and_offer(SHELL, {}, (access,), context(rules=rules))
    assert (before.verdict, after.verdict) == (Verdict.REQUIRE_USER_CONFIRMATION, Verdict.ALLOW)
    assert (before.digest, len(before.offers), after.offers) == (after.digest, 1, ())


def test_a_note_becomes_a_comment_of_one_line() -> None:
    rule = Rule(id="r", verdict=Verdict.DENY, tool="t", path="src/**", op=PathOp.WRITE, match=("src/a",))
    assert render_rule(rule, note="seen\n[[rule]] twice") == (
        '[[rule]]\n# seen [[rule]] twice\nid = "r"\nverdict = "deny"\ntool = "t"\npath = "src/**"\nop = "write"\n'
        'match = ["src/a"]\n'
    )


def test_a_rule_over_first_words_covers_no_option_that_runs_something_else() -> None:
    lines = {
        "cargo test": "cargo test --lib a -- --nocapture",
        "cargo test --config x": "cargo test --config x",
        "go test -exec": "go test -exec ./evil ./...",
        "npm test --node-options": "npm test --node-options=--import=data:text/javascript,x",
        "pytest -p": "pytest -p evil tests",
        "pytest outside": "pytest /tmp/x.py",
        "git commit -F": "git commit -F notes",
        "git add": "git add src/a.py",
        "git add ..": "git add ../x",
    }
    covered = {name for name, line in lines.items() if listed_prefix(line.split())}
    assert covered == {"cargo test", "git add"}
    assert covers(("cargo",), ("cargo", "publish")) is True
    assert covers(("frobnicate",), ("frobnicate", "--exec=x")) is True


@settings(max_examples=300)
@given(st.text("ab/", max_size=12), st.lists(st.sampled_from(["a", "b", "/", "*", "**", "**/", "?"]), max_size=7))
def test_a_pattern_fits_what_its_expression_fits(text: str, pieces: list[str]) -> None:
    known = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    pattern = "".join(pieces)
    parts = re.split(r"(\*\*/|\*\*|\*|\?)", pattern)
    expression = "".join(known.get(part, re.escape(part)) for part in parts)
    assert fits_glob(pattern, text) is (re.fullmatch(expression, text, re.DOTALL) is not None)


def test_a_pattern_made_to_take_long_is_answered() -> None:
    assert fits_glob("**a" * 40 + "b", "a" * 4000) is False
    assert fits_glob("*a" * 40 + "b", "a" * 4000) is False
    assert fits_glob("*" * 40 + "b", "a/" * 2000) is False


class _CountedText(str):
    """Counts how often somebody looks for the end of a part of it."""

    __slots__ = ("looked",)

    def find(self, *where: Any) -> int:
        self.looked = getattr(self, "looked", 0) + 1
        return super().find(*where)


@pytest.mark.parametrize("size", [10, 100, 1000])
def test_the_steps_of_a_match_grow_with_the_product_of_both_lengths(size: int) -> None:
    text = _CountedText("a" * size + "/" + "a" * size + "b")
    assert fits_glob("*a" * 5 + "b", text) is False
    assert text.looked <= 5 * 2


@pytest.mark.parametrize(
    "matched",
    [
        {"argv": ("npm", "test")},
        {"argv": ("npm", "test"), "exact": True},
        {"path": "secrets/**"},
        {"path": "**/.env", "op": PathOp.READ},
        {"host": ".example.com"},
        {"tool": "web_fetch"},
    ],
)
@pytest.mark.parametrize("verdict", [Verdict.DENY, Verdict.REQUIRE_USER_CONFIRMATION])
def test_rules_that_deny_or_ask_can_be_written_with_examples(matched: dict[str, Any], verdict: Verdict) -> None:
    written = with_examples(Rule(id="r", verdict=verdict, **matched))
    assert written is not None
    (read,) = _read(render_rules([written]))
    assert {name: getattr(read, name) for name in ("verdict", *matched)} == {"verdict": verdict, **matched}


@pytest.mark.parametrize("asked", ["rm -rf /", "npm install", "cat /srv/x", "cat .env", "echo x > AGENTS.md"])
@pytest.mark.parametrize(
    ("line", "alone"),
    [
        *((line, ("cat a",)) for line in ("cat a && {}", "{} && cat a", "cat a; {}", "{} || cat a", "cat a | {}")),
        *((line, ("cd sub && cat a",)) for line in ("cd sub && cat a && {}", "cd sub && {} ; cat a")),
        ("cat a; {}; cat a; wc b", ("cat a", "wc b")),
        *((line, ()) for line in ("{} | cat", "{} |& wc", "{} | sort | uniq")),
        *((line, ("cat a",)) for line in ("cat a | cat; {}", "{} | cat; cat a", "{}; cat $(cat a | cat)")),
        ("grep cat a | cat; {}", ("grep cat a",)),
        ("{} && cd sub && cat a", ()),
        ("echo x; {}", ()),
        ("cat $HOME/ws/a; {}", ()),
        (f"cat {'a ' * 100}; {{}}", ()),
    ],
)
def test_what_runs_by_itself_is_named_and_nothing_else(line: str, alone: tuple[str, ...], asked: str) -> None:
    access = RunCommand(command=line.format(asked), cwd=ROOT)
    around = context(files=MemoryView({ROOT: None, f"{ROOT}/sub": None, f"{ROOT}/a": "", f"{ROOT}/b": ""}))
    decision = decide_and_offer(SHELL, {}, (access,), around)
    assert (decision.verdict is Verdict.ALLOW, decision.alternatives) == (False, alone)

"""Shell lines by class: each file of `lines/` holds one line per row, `⏎` for a line break."""

import sys
from pathlib import Path

import pytest

from tests.policy.views import HOME, ROOT, MemoryView, context
from treadle.policy.classify import classify_command
from treadle.policy.decide import decide
from treadle.policy.findings import CommandClass
from treadle.policy.rules import Rule, Ruleset
from treadle.policy.shell.readers import readers
from treadle.policy.shell.shell_env import MAX_EFFORT, Effort
from treadle.policy.shell.shell_parser import script_until
from treadle.policy.shell.syntax import MAX_READ, BudgetError, Cursor
from treadle.protocol.permissions import Mode, Verdict
from treadle.protocol.tools import Risk, RunCommand, ToolSpec, ToolTraits

_LINES = Path(__file__).parent / "lines"
_SHELL = ToolSpec(name="execute_command", description="", parameters={}, traits=ToolTraits(), risk=Risk.EXECUTE)


def _class(line: str, files: MemoryView | None = None) -> CommandClass:
    return classify_command(line, ROOT, context(files=files)).command_class


@pytest.mark.parametrize("expected", list(CommandClass))
def test_lines_have_their_class(expected: CommandClass) -> None:
    lines = (_LINES / f"{expected.value}.txt").read_text().splitlines()
    found = {line: _class(line.replace("⏎", "\n")) for line in lines}
    assert {line: given.value for line, given in found.items() if given is not expected} == {}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("cat *.txt", CommandClass.READ_ONLY),
        ("cat docs/*", CommandClass.DANGEROUS),
        ("cat out/*.txt", CommandClass.NEEDS_CONFIRMATION),
        ("sort *.odd", CommandClass.NEEDS_CONFIRMATION),
        ("cat missing/*.txt", CommandClass.NEEDS_CONFIRMATION),
    ],
)
def test_a_glob_is_judged_by_the_files_it_stands_for(line: str, expected: CommandClass) -> None:
    files = MemoryView(
        files={f"{ROOT}/a.txt": "", f"{ROOT}/docs/server.key": "", f"{ROOT}/-o.odd": "", f"{ROOT}/out": None},
        links={f"{ROOT}/out/x.txt": "/srv/x.txt"},
    )
    assert _class(line, files) is expected


def test_a_directory_is_followed_by_its_name_like_the_shell_does() -> None:
    files = MemoryView(links={f"{ROOT}/deep": f"{ROOT}/a/b/c"})
    classes = [_class(line, files) for line in ("cd deep && cat ../x", "cd deep && cd .. && cat ../x")]
    assert classes == [CommandClass.READ_ONLY, CommandClass.NEEDS_CONFIRMATION]


def test_a_line_outside_the_workspace_asks() -> None:
    assert classify_command("ls", HOME, context()).command_class is CommandClass.NEEDS_CONFIRMATION


@pytest.mark.parametrize(
    "hidden", ["\r", "\x07", "\x7f", "\x85", "\u00a0", "\u2003", "\u200b", "\u202e", "\ufeff", "\U000e0041"]
)
def test_characters_that_hide_something_are_dangerous(hidden: str) -> None:
    assert _class(f"ls {hidden}x") is CommandClass.DANGEROUS


def test_a_look_alike_letter_asks() -> None:
    assert _class("cat \u0441onfig.yml") is CommandClass.NEEDS_CONFIRMATION


@pytest.mark.parametrize(
    "line",
    ["foo " + " ".join(f"b{number}" for number in range(3000)), "(" * 20_000, "$((" * 3000, "echo " + "{a,b}" * 100,
     "`\\" * 5000, "foo " + "'a b' " * 2000, "cd a;" * 600, "sort " + "*a?" * 2000, "a|b;" * 5000,
     "foo " + "a=b:c@d," * 6000, "x=a; " + "x=$x$x; " * 4000, "foo " + "--x='a;b' " * 4000],
)  # fmt: skip
def test_a_line_made_to_take_long_is_answered(line: str) -> None:
    assert _class(line) is not CommandClass.READ_ONLY


@pytest.mark.parametrize("joint", ["; ", " && ", " | ", "\n"])
def test_danger_behind_more_commands_than_are_followed_is_seen(joint: str) -> None:
    assert _class(joint.join([*["true"] * 600, 'sh -c "$(cat a)"'])) is CommandClass.DANGEROUS


def test_a_line_with_very_many_redirections_may_do_anything() -> None:
    judged = classify_command("echo a" + " >x" * 2000, ROOT, context())
    assert [(found.rule, found.risk) for found in judged.findings] == [("budget", Risk.CRITICAL)]


def _counted(line: str) -> tuple[bool, Cursor]:
    """Parse a line; whether that stopped at the bound, and how far it came."""
    cursor = Cursor(line, script_until)
    try:
        script_until(cursor, "")
    except BudgetError:
        return True, cursor
    return False, cursor


@pytest.mark.parametrize(
    "piece", ["a;", "a|b;", "a&&", "ls\n", ">x ", "b ", "x=a ", "$(a) ", "`a` ", "{ a; }; ", "f() { a; }; ", "<<<a "]
)
def test_the_parser_stops_at_its_bound_whatever_a_line_is_made_of(piece: str) -> None:
    stopped, cursor = _counted(piece * 20_000)
    assert stopped
    assert cursor.spent.read <= MAX_READ + 3
    assert cursor.pos < len(piece) * 20_000


_MEGABYTE = 1_000_000


def _of_size(piece: str, size: int) -> str:
    return (piece * (size // len(piece) + 1))[:size]


_LONG = (
    "a;", "a|b;", "a&&", "ls\n", ">x ", "echo <x ", "b1 ", "x=a ", "x=$x$x; ", "$(a) ", "`a` ", "{ ", "(", "$((",
    '"$(', "${x:-", "{a,b}", "*a? ", "*a?", "a=b:c@d,", "x", "../", "cd a; cd ..; ", "f() { a; }; ", "if true; then ",
    "for i in a; do ", "case a in a) ", "timeout 1 ", "| xargs rm ", "cat <<A\nb\nA\n", "'a b' ", "-exec rm {} ; ",
    "--x='a;b' ", "[[ a == b ]] && ", "((i=i+1)); ", "${a[1]}", "eval ", "sudo a; ", "éß", "# a\n",
)  # fmt: skip


@pytest.mark.parametrize("size", [60_000, _MEGABYTE])
@pytest.mark.parametrize("piece", _LONG)
def test_a_line_of_any_length_takes_a_bounded_number_of_steps(
    piece: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps, spend = 0, Effort.spend

    def counted(effort: Effort, more: int = 1) -> None:
        nonlocal steps
        steps += more > 0
        spend(effort, more)

    monkeypatch.setattr(Effort, "spend", counted)
    line = _of_size(piece, size)
    decision = decide(_SHELL, {}, (RunCommand(command=line, cwd=ROOT),), context(mode=Mode.FULL))
    assert steps <= 2 * MAX_EFFORT
    assert size < _MEGABYTE or decision.verdict is Verdict.REQUIRE_USER_CONFIRMATION


@pytest.mark.parametrize("piece", [*_LONG, "declare -a x=(a) ", "declare a "])
def test_the_work_for_a_line_grows_as_the_line_does(piece: str) -> None:
    calls = [_calls(piece * (size // len(piece))) for size in (400, 1_600)]
    assert calls[1] <= 6 * calls[0] + 10_000


def _calls(line: str) -> int:
    """Judge a line; gives how many calls that takes, those of what Python has built in among them."""
    made = 0

    def count(frame: object, event: str, what: object) -> None:
        nonlocal made
        made += 1

    sys.setprofile(count)
    try:
        decide(_SHELL, {}, (RunCommand(command=line, cwd=ROOT),), context(mode=Mode.FULL))
    finally:
        sys.setprofile(None)
    return made


def test_what_is_too_long_to_be_judged_is_asked_in_every_mode_and_says_so() -> None:
    for line, why in (("a; " * 3000, "the line is too long to be judged"), ("b" * 70_000, "the line is longer than")):
        for mode in (Mode.ASK, Mode.EDITS, Mode.AUTO, Mode.FULL):
            access = (RunCommand(command=line, cwd=ROOT),)
            decision = decide(_SHELL, {}, access, context(mode=mode, confines=True))
            assert decision.verdict is Verdict.REQUIRE_USER_CONFIRMATION
            assert any(reason.text.startswith(why) for reason in decision.reasons)


def test_a_rule_that_denies_sees_what_a_line_names_that_is_not_understood() -> None:
    deny = Rule(id="no-frob", verdict=Verdict.DENY, argv=("frob", "it"))
    for line in ("ls | | frob it", "cat" + " a" * 2000 + "; frob it", "a; " * 3000 + "frob it"):
        access = (RunCommand(command=line, cwd=ROOT),)
        assert decide(_SHELL, {}, access, context(rules=Ruleset(rules=(deny,)))).verdict is Verdict.DENY


@pytest.mark.parametrize(
    "line", ["cd a && cd b; cat ../x", "cd src; cat ../x", "cd a || cat ../x", "{ cd a && cd b; }; cat ../../x"]
)
def test_a_change_of_directory_that_may_fail_leaves_both_directories_possible(line: str) -> None:
    assert _class(line) is CommandClass.NEEDS_CONFIRMATION


@pytest.mark.parametrize(
    "line",
    [
        'x=.env; false && x=a; cat "$x"', 'x=.env; true || x=a; cat "$x"', 'x=.env; false && { x=a; }; cat "$x"',
        'x=.env; [ -f y ] && x=a\ncat "$x"', 'x=.env; if false; then x=a; fi; cat "$x"',
        'x=.env; for f in $(true); do x=a; done; cat "$x"', 'x=.env; for f in 1; do break; x=a; done; cat "$x"',
        'x=a; for f in $(seq 3); do cat "$x"; x=.env; done', 'x=a; for f in 1 2; do cat "$x"; x=.env; done',
        'x=a; for f in 1 2; do cat "$x"; x=.env; true && continue; x=a; done',
        'x=a; for f in *; do cat "$x"; x=/srv/b; done',
        'x=a; for f in 1; do for g in 1; do x=.env; break 2; done; x=a; done; cat "$x"',
        'x=a; for f in 1 2; do cat "$x"; x=.env; true && command continue; x=a; done',
        'y=.env; false && y=a; for x in $y; do :; done; cat "$x"', "command cd .. && cat x",
        'y=.env; [ -f b ] && y=a; for x in c $y; do :; done; cat "$x"', 'x=a; x=.env || x=a; cat "$x"',
        "! cd src; cat ../x", "{ cd src; } && cat ../x", 'x=a; f() { x=.env; }; x=a; f; cat "$x"',
        "true || cd src && cat ../x", "cd src/deep && for f in $(seq 9); do cat ../x; cd ..; done",
        'x=a; while read -r f; do cat "$x"; x=.env; done < list', 'x=.env; f() { x=a; }; cat "$x"; f',
        'x=.env; x=a && true & cat "$x"', 'x=a; y=b; for f in $(seq 9); do cat "$x"; x="$y"; y=.env; done',
    ],
)  # fmt: skip
def test_what_a_step_sets_that_may_not_run_or_run_again_is_not_relied_on(line: str) -> None:
    assert _class(line) is not CommandClass.READ_ONLY


@pytest.mark.parametrize(
    "line",
    [
        'x=a; cat "$x"', 'x=a && cat "$x" && x=b && cat "$x"', 'for f in a b; do x=src/$f; cat "$x"; done',
        'x=.env; x=a; cat "$x"', 'if [ -f a ]; then x=a; cat "$x"; fi', '(x=.env); x=a; cat "$x"', "cd src && ls ..",
        'for f in $(seq 3); do x=a; cat "$x"; done', 'x=.env; [ -f y ] && x=a && cat "$x"',
        "for d in src docs; do (cd $d && ls); done",
    ],
)  # fmt: skip
def test_what_is_surely_set_is_known(line: str) -> None:
    assert _class(line) is CommandClass.READ_ONLY


@pytest.mark.parametrize(
    "line",
    ['x=a; for f in 1 2; do cat "$x"; x=.env; done', 'x=a; for f in $(seq 3); do cat "$x"; x=.env; done',
     'x=a; while true; do cat "$x"; x=.env; done'],
)  # fmt: skip
def test_what_a_later_round_of_a_loop_reads_is_seen(line: str) -> None:
    assert _class(line) is CommandClass.DANGEROUS


def test_what_stands_close_to_a_line_that_runs_unasked_asks() -> None:
    lines = (_LINES / "neighbours_that_ask.txt").read_text().splitlines()
    assert [line for line in lines if _class(line.replace("⏎", "\n")) is CommandClass.READ_ONLY] == []


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('for f in *.md; do wc -l "$f"; done', CommandClass.READ_ONLY),
        ("for f in *.md; do wc -l $f; done", CommandClass.NEEDS_CONFIRMATION),
        ("for f in *.md; do sort $f; done", CommandClass.NEEDS_CONFIRMATION),
        ('for f in *.txt; do cat "$f"; done', CommandClass.READ_ONLY),
        ("for f in *.txt; do sort $f; done", CommandClass.NEEDS_CONFIRMATION),
        ('for f in *.odd; do sort "$f"; done', CommandClass.NEEDS_CONFIRMATION),
        ('for f in docs/*; do cat "$f"; done', CommandClass.DANGEROUS),
        ('for f in docs/*; do head -3 < "$f"; done', CommandClass.DANGEROUS),
        ('for f in *.link; do cat "$f"; done', CommandClass.NEEDS_CONFIRMATION),
        ('for f in *.missing; do sort "$f"; done', CommandClass.NEEDS_CONFIRMATION),
    ],
)
def test_a_loop_over_a_glob_is_judged_by_the_files_it_stands_for(line: str, expected: CommandClass) -> None:
    files = MemoryView(
        files={f"{ROOT}/{name}": "" for name in ("a.md", "b.md", "a -oout.txt", "docs/server.key", "-o.odd", "d.odd")},
        links={f"{ROOT}/x.link": "/srv/x"},
    )
    assert _class(line, files) is expected


def test_a_glob_that_could_stand_for_a_secret_is_judged_by_what_is_there() -> None:
    plain = MemoryView(files={f"{ROOT}/a.json": "", f"{ROOT}/conf/a.yml": ""})
    secret = MemoryView(files={f"{ROOT}/a.json": "", f"{ROOT}/credentials.json": "", f"{ROOT}/conf/secrets.yml": ""})
    lines = ("cat *.json", "head -3 conf/*.yml", 'for f in *.json; do cat "$f"; done')
    assert [_class(line, plain) for line in lines] == [CommandClass.READ_ONLY] * 3
    assert [_class(line, secret) for line in lines] == [CommandClass.DANGEROUS] * 3
    assert [_class(line) for line in lines] == [CommandClass.NEEDS_CONFIRMATION] * 3


def test_a_directory_with_more_names_than_are_seen_asks() -> None:
    files = MemoryView(files={f"{ROOT}/{number}.txt": "" for number in range(10_000)} | {f"{ROOT}/a.md": ""})
    assert _class("cat *.md", files) is CommandClass.NEEDS_CONFIRMATION


def test_what_a_pipe_in_place_of_a_file_runs_is_judged_and_only_readers_may_take_one() -> None:
    lines = (_LINES / "pipes_that_ask.txt").read_text().splitlines()
    assert [line for line in lines if _class(line) is CommandClass.READ_ONLY] == []


def test_a_program_that_is_named_by_its_place_asks_and_is_judged_by_its_name() -> None:
    classes = [_class(line) for line in ("/usr/bin/ls", "./ls", "/bin/rm -rf ~")]
    assert classes == [CommandClass.NEEDS_CONFIRMATION, CommandClass.NEEDS_CONFIRMATION, CommandClass.DANGEROUS]


@pytest.mark.parametrize("name", [name for name, table in readers().items() if table.operands[:1] == ("PATTERN",)])
def test_a_search_with_an_unknown_option_and_nothing_else_asks(name: str) -> None:
    assert _class(f"{name} --no-such-option") is CommandClass.NEEDS_CONFIRMATION

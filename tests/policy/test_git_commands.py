"""Which commands of git are known: every other name is an alias, a program or a helper, and asks in every mode."""

import posixpath
import shlex
from typing import Any

import pytest

from tests.policy.views import ROOT, MemoryView, context
from treadle.policy.decide import decide
from treadle.protocol.permissions import Decision, Mode, Verdict
from treadle.protocol.rebase_steps import OPEN_STEPS
from treadle.protocol.tools import Confinement, Risk, RunCommand, ToolSpec, ToolTraits

SHELL = ToolSpec(name="execute_command", description="", parameters={}, traits=ToolTraits(), risk=Risk.EXECUTE)
ALLOW, ASK = Verdict.ALLOW, Verdict.REQUIRE_USER_CONFIRMATION
_words = str.split
MODES = [Mode.ASK, Mode.EDITS, Mode.AUTO, Mode.FULL]


def decided(line: str, mode: Mode = Mode.AUTO, **changes: Any) -> Decision:
    given: dict[str, Any] = {"confines": True, "brokers": True, **changes}
    return decide(SHELL, {}, (RunCommand(command=line, cwd=ROOT),), context(mode, **given))


RUN_WHAT_THEY_ARE_GIVEN = _words("""
    archimport citool credential credential-cache credential-store cvsexportcommit cvsimport cvsserver daemon
    difftool env--helper fetch-pack filter-branch for-each-repo fsmonitor--daemon gui hook http-backend http-fetch
    http-push imap-send instaweb merge-index merge-octopus merge-one-file merge-ours merge-recursive merge-resolve
    merge-subtree mergetool p4 quiltimport receive-pack remote-ext remote-fd remote-http remote-https send-email
    send-pack sh-i18n sh-setup shell submodule--helper svn upload-archive upload-pack web--browse
""")
NOT_OF_GIT = _words("nuke back pf st co absorb annex flow machete town cliff secret crypt x ! Log LOG branch- s.sh")
BEHIND = ["", "topic", "-D topic", "--config=k branch -D topic", "-- push -f origin :topic", "run ./x", "--help"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", [*RUN_WHAT_THEY_ARE_GIVEN, *NOT_OF_GIT])
def test_a_name_that_is_no_known_command_asks_in_every_mode(name: str, mode: Mode) -> None:
    for line in (*(f"git {name} {words}" for words in BEHIND), f"git -C . {name}", f"git --no-pager {name} x"):
        found = decided(line, mode)
        assert (found.verdict, found.risk) == (ASK, Risk.CRITICAL), line
    for line in (
        f"cd sub && git {name}",
        f"make; git {name} x",
        f"sh -c 'git {name}'",
        f"git submodule foreach git {name}",
    ):
        assert decided(line, mode).verdict is ASK, line
    for place in ("", "/usr/lib/git-core/"):
        assert decided(f"{place}git-{name} x", mode).verdict is ASK


def test_a_name_that_is_no_known_command_says_so() -> None:
    said = [reason.text for reason in decided("git nuke").reasons]
    assert "git nuke is not a command that Treadle knows: an alias, a program or a helper that may do anything" in said


ADDS = """
    add -A|bisect start|branch x|bundle create x HEAD|cherry-pick x|commit -m x|commit-graph write|gc|init|lfs track x
    merge x|mv a b|notes add -m x|pack-refs --all|read-tree HEAD|rebase x|repack -d|rerere|reset|restore --staged x
    revert x|rm a|stage a|stash|switch x|tag x|update-index --refresh|update-server-info|write-tree|apply --index x
"""


@pytest.mark.parametrize("words", [words.strip() for line in ADDS.strip().splitlines() for words in line.split("|")])
def test_what_git_itself_adds_runs_unasked_in_auto(words: str) -> None:
    found = decided(f"git {words}")
    assert (found.verdict, found.confinement) == (ALLOW, Confinement.GIT)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "words", ["am x", "am", "subtree add -P x . y", "subtree merge -P x y", "subtree pull -P x . y"]
)
def test_what_commits_what_it_is_given_asks_in_every_mode(words: str, mode: Mode) -> None:
    assert decided(f"git {words}", mode).verdict is ASK
    for after in ("am --abort", "am --quit", "am --continue", "subtree split -P x"):
        assert decided(f"git {after}").verdict is ALLOW


NAMES_IN_THE_INDEX = [".envrc", ".github/workflows/x.yml", ".husky/pre-commit", "AGENTS.md", "sub/.vscode/tasks.json"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", NAMES_IN_THE_INDEX)
def test_to_put_an_object_into_the_index_as_a_control_file_is_to_write_it(name: str, mode: Mode) -> None:
    for form in (f"--add --cacheinfo 100644,abc,{name}", f"--cacheinfo 100755 abc {name}", f"--add {name}"):
        found = decided(f"git update-index {form}", mode)
        assert (found.verdict, found.risk) == (ASK, Risk.CRITICAL)


HARMLESS_TO_GIT = _words("""
    GIT_EDITOR=true GIT_EDITOR=: EDITOR=true VISUAL=cat GIT_EDITOR= GIT_SEQUENCE_EDITOR=: GIT_SEQUENCE_EDITOR=true
    GIT_PAGER=cat PAGER=cat GIT_PAGER= GIT_TERMINAL_PROMPT=0 GIT_OPTIONAL_LOCKS=0 GIT_TRACE=1 GIT_TRACE_PERFORMANCE=1
    GIT_MERGE_AUTOEDIT=no GIT_LFS_SKIP_SMUDGE=1 GIT_AUTHOR_NAME='A|B' GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_DATE="$(date)"
    GIT_COMMITTER_NAME=$NAME GIT_REFLOG_ACTION=x LANG=C LC_ALL=C TZ=UTC NO_COLOR=1 CI=1 HUSKY=0 SKIP=x NODE_ENV=test
    PYTHONPATH=src
    GIT_SEQUENCE_EDITOR="sed|-i|'2,\\$s/^pick/squash/'" GIT_SEQUENCE_EDITOR="sed|-i|-e|'1s/^pick/reword/'"
    GIT_SEQUENCE_EDITOR="sed|-i|2d" GIT_SEQUENCE_EDITOR="sed|-i|'s/^pick|abc12/edit|abc12/;3d'"
""")
OBEYED = _words("""
    GIT_EDITOR='sh|x' GIT_EDITOR=./x EDITOR=vi VISUAL=./x GIT_SEQUENCE_EDITOR=./x GIT_EDITOR=$X GIT_EDITOR="$(cat|x)"
    GIT_SEQUENCE_EDITOR="sed|-i|'1a|exec|sh|x'" GIT_SEQUENCE_EDITOR="sed|-i|'s/^pick/exec/'"
    GIT_SEQUENCE_EDITOR="sed|-i|'s/^pick/x/'" GIT_SEQUENCE_EDITOR="sed|-i|2d;sh|x" GIT_SEQUENCE_EDITOR="sed|-i|2d|x"
    GIT_SEQUENCE_EDITOR="sed|-i|'s/^pick/edit/e'" GIT_SEQUENCE_EDITOR="sed|-i|'s/pick/p|abc/'"
    GIT_SEQUENCE_EDITOR="sed|-i|'s/pick|abc/p|def/'" GIT_SEQUENCE_EDITOR="sed|-i|'2d;s/pick|abc/p/'"
    GIT_SEQUENCE_EDITOR="printf|'exec|x'|>" GIT_EDITOR='true;sh|x' GIT_EDITOR='true|x'
    GIT_CONFIG_COUNT=1 GIT_CONFIG_GLOBAL=x GIT_CONFIG_PARAMETERS=x GIT_EXEC_PATH=. GIT_DIR=x
    GIT_COMMON_DIR=x GIT_WORK_TREE=.git GIT_INDEX_FILE=x GIT_OBJECT_DIRECTORY=x GIT_SSH=./x GIT_SSH_COMMAND=./x
    GIT_ASKPASS=./x GIT_PROXY_COMMAND=x GIT_EXTERNAL_DIFF=x GIT_TEMPLATE_DIR=x GIT_TRACE=/x GIT_TRACE2_EVENT=x GIT_NEW=x
    PATH=. PATH=.:$PATH LD_PRELOAD=x LD_LIBRARY_PATH=x BASH_ENV=x ENV=x PAGER='sh|x' GIT_PAGER=x HOME=.
    XDG_CONFIG_HOME=. LESSOPEN=x PERL5LIB=x PYTHONSTARTUP=x SSH_ASKPASS=x
""")
IN_GIT = ["{} git commit -m x", "{} git rebase -i HEAD~2", "git log && {} git add .", "({} git merge x)"]
"""Lines that run where the repository can be written."""

IN_WORK = [
    *("export {}; git commit", "{}; git commit", "env {} git commit", "{} make; git commit", "{} git commit; make"),
    *("sh -c {quoted}", "bash -lc {quoted} && git log", "eval {quoted}", "if true; then export {}; fi; git commit"),
]
"""Lines of which Treadle judges each call of git: it takes no such variable along."""


@pytest.mark.parametrize("variable", [one.replace("|", " ") for one in HARMLESS_TO_GIT])
def test_a_variable_that_git_only_notes_asks_nothing(variable: str) -> None:
    for line in IN_GIT:
        found = decided(line.format(variable))
        assert (found.verdict, found.confinement) == (ALLOW, Confinement.GIT), line
    if '"' not in variable and "$" not in variable:
        assert decided(f"{variable} git commit -m x", Mode.FULL).verdict is ALLOW


@pytest.mark.parametrize("variable", [one.replace("|", " ") for one in OBEYED])
def test_a_variable_that_git_or_its_helpers_obey_asks_where_the_repository_can_be_written(variable: str) -> None:
    for line in IN_GIT:
        for mode in MODES:
            found = decided(line.format(variable), mode)
            assert (found.verdict, found.risk) == (ASK, Risk.CRITICAL), (line, mode)
    for form in IN_WORK:
        line = form.format(variable, quoted=shlex.quote(f"{variable} git commit"))
        found = decided(line)
        assert found.verdict is ASK or found.confinement is Confinement.WORK, line
        assert decided(line, brokers=False).verdict is ASK, line


def test_a_script_of_git_runs_where_the_repository_cannot_be_written_unless_it_is_gits_own_work() -> None:
    for script in ("make", "cd .. && sh x.sh", "sh x.sh; git add .", "$x"):
        for line in (f"git submodule foreach '{script}'", f"git submodule foreach '{script}' && git commit -m x"):
            found = decided(line)
            assert found.verdict is ASK or found.confinement is Confinement.WORK, line
    assert decided("git submodule foreach 'git add . && echo x'").confinement is Confinement.GIT
    assert decided("git submodule foreach git status").confinement is Confinement.LOOK


@pytest.mark.parametrize("text", ["$((PATH=1))", "${x@P}", "${!x}", "$((x))", "${x[PATH=1]}", "${x^^$(sh x.sh)}"])
def test_text_that_is_evaluated_beside_git_is_so_where_the_repository_cannot_be_written(text: str) -> None:
    for line in (f'echo "{text}"; git add .', f'git commit -m "{text}"', f'git log > "{text}"; git add .'):
        assert decided(line).confinement is not Confinement.GIT or decided(line).verdict is ASK, line
    assert decided('x=1; echo "${x:-$y}" && git commit -m "$x"').confinement is Confinement.GIT


def test_behind_an_option_that_is_not_known_the_command_is_not_known() -> None:
    for line in (
        "git --new log push -f origin :topic",
        "git --new=x log",
        "git --attr-source log push -f origin :topic",
    ):
        assert [decided(line, mode).risk for mode in MODES] == [Risk.CRITICAL] * len(MODES), line
    for option in ("--paginate", "-p", "--no-replace-objects", "--glob-pathspecs", "--attr-source=HEAD", "--no-advice"):
        assert [decided(f"git {option} log", mode).verdict for mode in MODES] == [ALLOW] * len(MODES), option


@pytest.mark.parametrize("words", ["--continue", "--skip", "--cont"])
@pytest.mark.parametrize(
    ("steps", "asks"),
    [
        ("pick a x\nexec sh x.sh\n", True),
        ("pick a x\n  x\tsh x.sh\n", True),
        ("exec sh", True),
        ("pick a exec\n# exec sh\nfixup b x\n", False),
        ("", False),
    ],
)
def test_to_go_on_with_steps_that_run_programs_asks(words: str, steps: str, asks: bool) -> None:
    own, linked = f"{ROOT}/.git", "/other/.git/worktrees/ws"
    for git, pointer in ((own, None), (linked, f"gitdir: {linked}\n")):
        files = {own: pointer, posixpath.dirname(f"{git}/{OPEN_STEPS}"): None, f"{git}/{OPEN_STEPS}": steps}
        for line in (f"git rebase {words}", f"cd sub; git rebase {words}"):
            for mode in MODES:
                found = decided(line, mode, files=MemoryView(files), trusted=True)
                assert (found.risk is Risk.CRITICAL) is asks, (line, mode, found.reasons)
        assert decided("git rebase --abort", files=MemoryView(files)).verdict is ALLOW

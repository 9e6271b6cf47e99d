"""What the policy does not see. Each of these is written in SECURITY.md; one that starts to pass must leave it."""

import pytest

from tests.policy.views import ROOT, context
from treadle.policy.classify import classify_command
from treadle.policy.decide import decide
from treadle.policy.findings import CommandClass
from treadle.policy.secrets import Redactor
from treadle.protocol.permissions import Mode, Verdict
from treadle.protocol.tools import Risk, RunCommand, ToolSpec, ToolTraits

_SHELL = ToolSpec(name="execute_command", description="", parameters={}, traits=ToolTraits(), risk=Risk.EXECUTE)


def _class(line: str) -> CommandClass:
    return classify_command(line, ROOT, context()).command_class


@pytest.mark.xfail(strict=True, reason="a secret in a file with an ordinary name is not recognised by its name")
def test_a_secret_in_an_ordinary_file_is_protected() -> None:
    assert _class("cat notes.txt") is not CommandClass.READ_ONLY


@pytest.mark.xfail(
    strict=True, reason="a recursive search reads protected files below the workspace; only redaction hides them"
)
def test_a_recursive_search_leaves_protected_files_out() -> None:
    assert _class("grep -r API_KEY .") is not CommandClass.READ_ONLY


@pytest.mark.xfail(strict=True, reason="an object of the repository is named by its hash, not by the file it was")
def test_a_committed_secret_named_by_its_hash_is_protected() -> None:
    assert _class("git cat-file -p 3b18e512dba79e4c8300dd08aeb37f8e728b8dad") is not CommandClass.READ_ONLY


@pytest.mark.xfail(
    strict=True, reason="what a script or build of the workspace does is not read; the sandbox is the guard"
)
def test_harm_inside_a_script_of_the_workspace_is_seen() -> None:
    assert _class("make deploy") is CommandClass.DANGEROUS


@pytest.mark.xfail(
    strict=True, reason="mode full allows what is not known, and so a name that is only known when it runs"
)
def test_a_secret_read_by_an_unknown_name_asks_in_full_mode() -> None:
    line = RunCommand(command='x=$(cat name); cat "$x"', cwd=ROOT)
    assert decide(_SHELL, {}, (line,), context(mode=Mode.FULL)).verdict is not Verdict.ALLOW


@pytest.mark.xfail(strict=True, reason="whether a script or build of the workspace fetches something is not seen")
def test_text_from_outside_that_a_script_brings_is_marked() -> None:
    assert classify_command("make fetch-page", ROOT, context()).outside


@pytest.mark.xfail(strict=True, reason="what the folder's own remotes send counts as the folder's own text")
def test_text_from_a_remote_of_the_folder_is_marked() -> None:
    assert classify_command("git pull", ROOT, context()).outside


@pytest.mark.xfail(strict=True, reason="program text in another language is searched for words, not understood")
def test_disguised_harm_in_another_language_is_seen() -> None:
    assert _class("python3 -c \"(lambda o: o('a', 'w'))(open)\"") is CommandClass.DANGEROUS


@pytest.mark.xfail(strict=True, reason="a program of that name earlier on the search path is not looked for")
def test_a_program_that_shadows_a_reader_is_seen() -> None:
    assert _class("ls") is not CommandClass.READ_ONLY


@pytest.mark.xfail(strict=True, reason="a secret without a known format, name or value looks like any text")
def test_a_secret_without_form_is_hidden() -> None:
    assert "tr0ub4dor" not in Redactor().redact("the word is tr0ub4dor")


@pytest.mark.xfail(strict=True, reason="a secret that was turned round, compressed or enciphered is other text")
def test_a_secret_in_an_encoding_of_its_own_is_hidden() -> None:
    assert Redactor((("correct-horse", "x"),)).redact("esroh-tcerroc") != "esroh-tcerroc"

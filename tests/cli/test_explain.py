import pytest

from tests.cli.conftest import Command
from treadle.app.reports.extras import extra_of
from treadle.cli import main
from treadle.cli.parser import CommandParser
from treadle.workspace.installed import extras, install_command


def test_a_code_is_explained(treadle: Command) -> None:
    said = treadle("explain", "key-missing")
    assert (said.code, said.out.splitlines()[0]) == (0, "key-missing")
    assert "treadle login" in said.out


def test_a_mistyped_code_gives_the_nearest(treadle: Command) -> None:
    said = treadle("explain", "keys-missing")
    assert (said.code, "key-missing" in said.err) == (78, True)


def test_without_a_code_all_are_listed(treadle: Command) -> None:
    assert len(treadle("explain").out.splitlines()) > 60


def test_a_missing_extra_is_named_with_its_command(treadle: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    class Module:
        @staticmethod
        def execute(arguments: object) -> int:
            raise ModuleNotFoundError("No module named 'docx.oxml'", name="docx.oxml")

    real = main._module
    monkeypatch.setattr(main, "_module", lambda name: Module if name == "explain" else real(name))
    monkeypatch.setattr(main, "parser_of", lambda name: CommandParser())
    said = treadle("explain")
    assert said.code == 1
    assert f"fix: Run: {install_command('docs')}" in said.err


def test_modules_belong_to_their_extras() -> None:
    assert {"code", "docs", "keyring"} <= extras().keys()
    modules = ("tree_sitter_javascript", "pypdf", "docx", "openpyxl", "keyring", "keyring.backends", "json")
    assert [extra_of(module) for module in modules] == ["code", "docs", "docs", "docs", "keyring", "keyring", ""]

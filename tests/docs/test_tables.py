"""What documents list is what there is: exit codes, settings, variables, commands, slash commands, flags."""

import re
from collections.abc import Iterator

import msgspec
import pytest

from tests.docs.command_lines import parsers
from tests.docs.pages import page, pages
from treadle.app.config.layers import _USERS_OWN, VARIABLES
from treadle.app.config.mistakes import plain_paths
from treadle.app.config.sections import (
    DiagnosticSettings,
    ModelSettings,
    ProviderSettings,
)
from treadle.app.errors.exits import Exit
from treadle.app.models.known import known_models
from treadle.app.session.own_commands.slash_commands import SLASH_TABLE
from treadle.cli.task_words import COMMANDS
from treadle.parsing.readings import SENTENCES
from treadle.policy.modes import _ALLOWED, _IN_A_COPY
from treadle.protocol.permissions import Mode
from treadle.protocol.tools import Risk
from treadle.providers.provider_rows import ROWS, Wire

ALL = "\n".join(one.text for one in pages())


def cells(text: str, heading: str) -> Iterator[list[str]]:
    """The rows of the table whose head begins with some words."""
    table = text.partition(f"\n| {heading}")[2].partition("\n\n")[0].split("\n")[2:]
    assert table, heading
    for row in table:
        yield [cell.strip() for cell in row.strip("|").split(" | ")]


def test_the_exit_codes_are_those_of_the_program() -> None:
    named = [int(code) for row in cells(page("headless.md").text, "exit code") for code in row[0].split(", ")]
    assert named == [int(code) for code in Exit]


def test_every_setting_is_on_the_page_about_settings() -> None:
    text = page("configuration.md").text + page("checkpoints.md").text + page("context.md").text
    for_hooks = page("hooks.md").text
    names = {path[-1] for path, _ in plain_paths()}
    for section in (ProviderSettings, ModelSettings, DiagnosticSettings):
        names |= set(section.__struct_fields__)
    missing = {name for name in names if not re.search(rf"\b{name}\b", text + for_hooks + ALL)}
    assert missing == set(), "Say in docs/configuration.md what it is for."


def test_what_a_workspace_may_not_set_is_listed_whole() -> None:
    text = page("configuration.md").text.partition("may not set")[2].partition("\n\n")[0]
    assert {name for name in _USERS_OWN if f"`{name}`" not in text} == set()


def test_every_variable_of_a_setting_is_listed() -> None:
    text = page("configuration.md").text
    assert {name for name in VARIABLES if f"`{name}`" not in text} == set()


def test_every_code_of_a_reading_is_listed_with_its_sentence() -> None:
    rows = {row[0].strip("`"): row[1] for row in cells(page("replies.md").text, "code | what was read")}
    assert rows == {str(code): sentence for code, sentence in SENTENCES.items()}


def test_every_command_is_on_a_page() -> None:
    quiet = {"help", "start", "parse", "scripted", "docs"}  # for developers, or of the Makefile
    missing = {name for name in COMMANDS if not re.search(rf"treadle {name}\b", ALL)} - quiet
    assert missing == set(), "Say on a page what it is for."


def test_every_slash_command_is_in_the_table_of_its_page() -> None:
    text = page("mentions.md").text
    missing = {row.name for row in SLASH_TABLE if not re.search(rf"`/{row.name}\b", text)}
    assert missing == set(), "Name it in docs/mentions.md, Slash commands."


def test_the_flags_of_the_readme_are_flags_of_treadle() -> None:
    own = {flag for action in parsers()[""].actions for flag in action.option_strings}
    named = {flag for row in cells(page("README.md").text, "flag") for flag in re.findall(r"`(--[\w-]+)", row[0])}
    assert len(named) > 15
    assert named - own == set()


def test_there_are_more_providers_than_documents_say() -> None:
    said = {int(number) for number in re.findall(r"over (\d+) (?:providers|rows)", ALL)}
    assert len(said) == 1
    assert len(ROWS) > max(said)


def test_there_are_as_many_wire_apis_as_documents_say() -> None:
    assert "five wire APIs" in ALL
    rows = list(cells(page("providers.md").text, "wire API"))
    assert len(rows) == len(Wire) == 5


@pytest.mark.parametrize("command", sorted({"docs", *COMMANDS}))
def test_the_line_of_a_command_names_no_choice_that_it_does_not_take(command: str) -> None:
    if command == "docs":
        (choices,) = (action.choices for action in parsers()["docs"].actions if action.dest == "page")
        assert set(COMMANDS["docs"].partition(": ")[2].split(", ")) == set(choices or ())
    assert COMMANDS[command]


def test_the_model_data_is_what_the_page_says() -> None:
    data = known_models().data
    text = page("features.md").text
    count = sum(len(msgspec.json.decode(models)) for models in data.providers.values())
    assert f"{count:,} models" in text
    assert f"newest source of {data.date}" in text


def test_the_table_of_risks_is_that_of_the_modes() -> None:
    rows = {row[0].strip("`"): row[2:] for row in cells(page("policy.md").text, "risk")}
    assert list(rows) == [risk.value for risk in Risk]
    for risk in Risk:
        asks, in_a_copy = (said.startswith("yes") for said in rows[risk.value])
        assert asks is (risk not in _ALLOWED[Mode.ASK]), risk
        assert in_a_copy is (risk not in _IN_A_COPY), risk

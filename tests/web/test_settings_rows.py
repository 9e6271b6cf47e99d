"""The settings in words: saved as they are changed, undone in the row, refused with the reason, read from a device."""

import re
import tomllib
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from tests.web.recorded import MODEL, Visit
from treadle.app.reports.installation import sandbox_checks
from treadle.web.screens.settings_rows import NAMED

SCREENS = ("general", "budgets", "sandbox")


def config(home: Path) -> dict[str, Any]:
    return tomllib.loads((home / "config.toml").read_text())


def row(visit: Visit, key: str, **said: str) -> str:
    """Send what a row sends; gives the row as it is then."""
    return unescape(str(visit.done("/settings/row", key=key, **said)["row"]))


def back_of(html: str) -> str:
    """The value with which Undo is sent, or what takes that back."""
    found = re.search(r'name="back" value="([^"]*)"[^>]*>(?:Undo|Redo)<', html)
    assert found is not None, html
    return found[1]


def test_every_row_is_on_its_screen_once_with_a_name_and_a_sentence(visit: Visit) -> None:
    found = [name for screen in SCREENS for name in re.findall(r'id="row-([^"]+)"', visit.text(f"/settings/{screen}"))]
    assert sorted(found) == sorted(NAMED)
    for screen in SCREENS:
        page = visit.text(f"/settings/{screen}")
        assert "<p></p>" not in page
        assert page.count("data-changes") == sum(f"/{screen}#" in path for _, path in NAMED.values())


@pytest.mark.parametrize(
    ("key", "value", "stored"),
    [
        ("mode", "edits", "edits"),
        ("checklist", "false", False),
        ("checkpoints.enabled", "false", False),
        ("language", 'Deutsch, "kurz"', 'Deutsch, "kurz"'),
        ("instructions", "Be short.\nBe kind.", "Be short.\nBe kind."),
        ("budget.turn_cost", "2.5", 2.5),
        ("budget.session_tokens", "5000", 5000),
        ("max_steps", " 12 ", 12),
        ("sandbox", "required", "required"),
        ("network.allow", "pypi.org\n\n .example.com \n", ["pypi.org", ".example.com"]),
        ("network.loopback_ports", "5432\n6379", [5432, 6379]),
        ("add_dirs", "~/my things", ["~/my things"]),
    ],
)
def test_a_value_is_saved_and_undone_to_what_stood_there(
    visit: Visit, key: str, value: str, stored: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = visit.recorded.home / "config.toml"
    before = config(visit.recorded.home)
    if key == "add_dirs":
        monkeypatch.setenv("HOME", str(tmp_path))
        (tmp_path / "my things").mkdir()
    html = row(visit, key, value=value)
    table: Any = config(visit.recorded.home)
    for name in key.split("."):
        table = table[name]
    assert table == stored
    assert "from your own file" in html
    assert "Saved · " in html
    assert back_of(html) == ""
    again = row(visit, key, value=value, back="")
    assert config(visit.recorded.home) == before
    assert file.read_text().startswith("# mine\n")
    assert "from your own file" not in again
    assert "Undone · " in again
    assert ">Redo<" in again


def test_undo_brings_the_own_value_back_and_can_be_undone_itself(visit: Visit) -> None:
    saved = row(visit, "budget.day_cost", value="7")
    assert back_of(saved) == "2.0"
    undone = row(visit, "budget.day_cost", value="7", back="2.0")
    assert config(visit.recorded.home)["budget"] == {"day_cost": 2.0}
    assert 'value="2"' in undone, "as short as it can be"
    row(visit, "budget.day_cost", value="2", back=back_of(undone))
    assert config(visit.recorded.home)["budget"] == {"day_cost": 7}
    gone = row(visit, "budget.day_cost", value="")
    assert "budget" not in config(visit.recorded.home)
    row(visit, "budget.day_cost", value="", back=back_of(gone))
    assert config(visit.recorded.home)["budget"] == {"day_cost": 7}
    assert (visit.recorded.home / "config.toml").read_text().startswith("# mine\n")


def test_what_changes_nothing_is_not_written(visit: Visit) -> None:
    before = (visit.recorded.home / "config.toml").read_text()
    for key, value in (("budget.ask_at", "0.8"), ("mode", "ask"), ("language", ""), ("network.allow", "\n")):
        assert "Saved" not in row(visit, key, value=value)
    assert (visit.recorded.home / "config.toml").read_text() == before


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("budget.turn_cost", "<b>a lot</b>", "It must be a number from 0 to 1,000,000,000."),
        ("budget.ask_at", "80", "It must be a number above 0 to 1."),
        ("max_steps", "0", "“Steps of a turn” cannot be '0'. It must be a whole number from 1."),
        ("thinking_budget", "abc", "“Thinking” cannot be 'abc'. It must be a whole number from 0."),
        ("network.deny", "pypi.org\nhttp://x", "“Hosts that are denied” contains 'http://x'"),
        ("network.loopback_ports", "80", "each from 1024 to 65535"),
        ("network.loopback_ports", "5432, 6379", "each from 1024 to 65535"),
        ("add_dirs", "things", "neither absolute nor begins with '~/'"),
        ("pass_variables", "ANTHROPIC_API_KEY", "commands never get a provider's key"),
        ("mode", "everything", "It must be one of: plan, ask, edits, auto, full."),
        ("model", "nobody/none", "There is no provider 'nobody'"),
    ],
)
def test_a_refused_value_stays_in_its_field_with_the_reason(visit: Visit, key: str, value: str, why: str) -> None:
    before = (visit.recorded.home / "config.toml").read_text()
    html = str(visit.done("/settings/row", key=key, value=value)["row"])
    assert why in unescape(re.sub(r"</?code>", "", html)), html
    assert "Undo" not in html
    assert "<b>a lot" not in html
    if key != "mode":
        assert value in unescape(html)
        assert 'aria-invalid="true"' in html
    assert (visit.recorded.home / "config.toml").read_text() == before


def test_a_mode_that_lets_more_run_than_edits_is_asked_about_before_it_is_the_default(visit: Visit) -> None:
    before = config(visit.recorded.home)
    for path in ("/settings/row", "/settings/set"):
        for mode in ("auto", "full"):
            asked = visit.done(path, key="mode", value=mode)
            assert asked["confirm"] == f"Start new sessions in mode {mode.capitalize()}?"
            assert "asks" in asked["why"], "it says what that means"
            assert config(visit.recorded.home) == before, "nothing is saved yet"
    assert "Saved" in str(visit.done("/settings/row", key="mode", value="auto", sure=True)["row"])
    assert config(visit.recorded.home)["mode"] == "auto"
    assert 'value="auto" aria-pressed="true" data-mode="auto"' in visit.text("/settings/general")
    assert "row" in visit.done("/settings/row", key="mode", value="auto"), "it is so already"
    back = back_of(row(visit, "mode", value="edits"))
    assert "confirm" in visit.done("/settings/row", key="mode", value="", back=back), "Undo would go there, too"


def test_a_row_writes_no_other_setting(visit: Visit) -> None:
    before = (visit.recorded.home / "config.toml").read_text()
    for key in ("providers.openai.base_url", "base_url", "approve", "profile", "", "nonsense"):
        refused = visit.post("/settings/row", key=key, value="x")
        assert (refused.status_code, refused.json()["code"]) == (400, "config-value"), key
    assert visit.post("/settings/row", key="instructions", value="x" * 20_001).status_code == 400
    assert (visit.recorded.home / "config.toml").read_text() == before


def test_a_mistake_in_the_file_is_said_and_left_alone(visit: Visit) -> None:
    file = visit.recorded.home / "config.toml"
    file.write_text('mode = "everything"\n')
    refused = visit.post("/settings/row", key="language", value="English")
    assert refused.status_code == 400
    assert "line 1" in refused.json()["what"]
    assert file.read_text() == 'mode = "everything"\n'


def test_settings_that_are_at_odds_can_be_corrected_in_the_rows(visit: Visit) -> None:
    file = visit.recorded.home / "config.toml"
    file.write_text('mode = "plan"\nprofile = "work"\n[profiles.work]\nbase_url = "http://localhost/v1"\n')
    assert 'value="plan" aria-pressed="true"' in visit.text("/settings/general")
    assert "Saved" in row(visit, "language", value="English")
    assert config(visit.recorded.home)["language"] == "English"


def test_a_row_says_what_comes_before_the_users_own_value(visit: Visit, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "applies instead" not in visit.text("/settings/budgets")
    assert f"{MODEL} applies instead, as given to Treadle when it started." in visit.text("/settings/general")
    monkeypatch.setenv("TREADLE_MODE", "plan")
    html = row(visit, "mode", value="edits")
    assert "Plan applies instead, from the environment." in html
    assert 'value="edits" aria-pressed="true"' in html, "the row is of the user's own value"
    folder = visit.recorded.folder / ".treadle"
    folder.mkdir()
    (folder / "config.toml").write_text("[budget]\nday_cost = 1.0\n")
    page = visit.text("/settings/budgets")
    assert "applies instead" not in page, "the folder is not trusted"
    visit.book.trust_once(visit.recorded.folder)
    assert f"1 applies instead, from the file of {visit.recorded.folder.name}." in visit.text("/settings/budgets")


def test_the_sandbox_is_shown_as_the_doctor_finds_it(visit: Visit) -> None:
    page = unescape(visit.text("/settings/sandbox"))
    for check in sandbox_checks(visit.recorded.folder):
        assert f'data-status="{check.status}"' in page
        assert f"<strong>{check.name}</strong>: {check.found}" in page
        assert check.fix in page


def test_the_palette_leads_to_the_row_that_a_setting_has(visit: Visit) -> None:
    found = {one["about"]: one for one in visit.get("/palette", "*/*").json() if one["kind"] == "Setting"}
    assert found["budget.session_cost"]["path"] == "/settings/budgets#row-budget.session_cost"
    assert found["budget.session_cost"]["title"] == "Cost of a session: US dollars that a session may cost."
    assert found["context.keep"]["path"] == "/settings#k-context.keep"


def test_a_paired_device_reads_the_rows_and_changes_none(visit: Visit) -> None:
    before = (visit.recorded.home / "config.toml").read_text()
    entrance = visit.keys.let_in(visit.keys.new_link(paired=True))
    assert entrance is not None
    visit.client.cookies.set("treadle", entrance.cookie)
    visit.client.headers["x-treadle-key"] = entrance.key
    for screen in SCREENS:
        page = visit.text(f"/settings/{screen}")
        assert "It is changed on the computer that Treadle runs on." in page
        assert not re.search(
            r'data-post="/settings/row"|<button[^>]*role="switch"|aria-pressed="true">Ask|name="back"', page
        )
    assert '<span class="text">2</span>' in visit.text("/settings/budgets"), "the value is there to be read"
    assert '<span class="text">In mode auto</span>' in visit.text("/settings/sandbox")
    assert '<span class="text">none</span>' in visit.text("/settings/sandbox")
    assert '<span class="text">On</span>' in visit.text("/settings/general")
    refused = visit.post("/settings/row", key="budget.day_cost", value="100")
    assert refused.status_code == 403
    assert (visit.recorded.home / "config.toml").read_text() == before

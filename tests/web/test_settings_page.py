"""The screens of the settings: what the command line would write, in the user's own files, and never a key."""

import asyncio
import json
import re
from functools import partial
from pathlib import Path

import pytest

from tests.web.recorded import HOST, MODEL, Visit
from treadle.app.config.layers import load_settings, read_layers
from treadle.app.config.mistakes import plain_paths
from treadle.app.config.sections import ProviderSettings
from treadle.app.config.setting_help import help_of
from treadle.app.models.model_choice import Models
from treadle.app.reports.origins import setting_lines
from treadle.app.reports.setting_table import setting_rows
from treadle.app.security.trusting import session_trust, trust_store, whole_trust
from treadle.providers.scripted.script import Refuse, Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer
from treadle.web.navigation import SETTINGS_GROUPS

KEY = "sk-none-of-your-business-4711"


def config(visit: Visit) -> str:
    return (visit.recorded.home / "config.toml").read_text()


def test_every_setting_has_a_line_of_help() -> None:
    paths = [path for path, _ in plain_paths()]
    assert len(paths) > 35
    assert [path for path in paths if not help_of(path)] == []


def test_every_screen_has_its_name_above_it_and_the_same_bar(visit: Visit) -> None:
    for _, screens in SETTINGS_GROUPS:
        for screen in screens:
            main = visit.text(screen.path).partition('<header class="head">')[2]
            assert re.findall(r'<h2 class="bigno">([^<]*)</h2>', main) == [screen.title]
            assert "Find a setting" in main


def test_the_rows_are_the_values_of_the_command_line(visit: Visit) -> None:
    layers = read_layers({"model": MODEL}, workspace=visit.recorded.folder, trusted=False)
    rows = {row.key: row for row in setting_rows(layers)}
    for line in setting_lines(layers):
        if line.key in rows:
            assert rows[line.key].origin == line.origin
    assert rows["model"].origin == "the command line"
    assert rows["budget.day_cost"].text == "2.0"
    assert rows["budget.day_cost"].own
    assert rows["checklist"].choices == ("true", "false")
    assert rows["max_retries"].wanted == "a whole number from 0 to 100"
    page = visit.text("/settings")
    assert "config.toml:3" in page
    assert all(key in page for key in ("budget.day_cost", "modes.plan.model", "context.keep"))


def test_a_value_is_written_as_the_command_line_does_and_taken_out_again(visit: Visit) -> None:
    said = visit.done("/settings/set", key="theme", value="dark")["said"]
    assert "Saved in" in said
    assert 'theme = "dark"' in config(visit)
    assert config(visit).startswith("# mine\n")
    visit.done("/settings/set", key="max_steps", value="12")
    assert "max_steps = 12" in config(visit)
    visit.done("/settings/unset", key="theme")
    assert "theme" not in config(visit)
    refused = visit.post("/settings/unset", key="theme")
    assert (refused.status_code, refused.json()["code"]) == (400, "config-unset")


def test_what_an_address_holds_of_secrets_is_neither_shown_nor_lost(visit: Visit) -> None:
    with (visit.recorded.home / "config.toml").open("a") as stream:
        stream.write('\n[providers.mine]\nbase_url = "http://localhost/v1"\nproxy = "http://me:pass4711@proxy:1"\n')
        stream.write('headers = { "X-Key" = "value4711" }\n')
    page = visit.text("/settings")
    assert "4711" not in page
    assert 'value="" placeholder="http://proxy:1"' in page
    assert "(hidden)" in page


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("mode", "everything", "mode cannot be 'everything'. It must be one of: plan, ask, edits, auto, full."),
        ("approve", '["critical"]', "approve cannot contain 'critical': dangerous calls always ask."),
        ("nonsense", "1", "There is no setting nonsense."),
        ("model", "nobody/none", ""),
    ],
)
def test_a_mistake_is_said_in_words_and_nothing_is_written(visit: Visit, key: str, value: str, why: str) -> None:
    before = config(visit)
    refused = visit.post("/settings/set", key=key, value=value)
    assert refused.status_code == 400
    assert why in refused.json()["why"]
    assert config(visit) == before


def test_another_site_changes_nothing(visit: Visit) -> None:
    before = config(visit)
    body = {"key": "mode", "value": "full"}
    for headers in (
        {"origin": "https://evil.example"},
        {},
        {"origin": f"http://{HOST}", "sec-fetch-site": "cross-site"},
    ):
        assert visit.client.post("/settings/set", json=body, headers=headers).status_code == 403
    form = visit.client.post("/settings/set", data=body, headers={"origin": f"http://{HOST}"})
    assert form.status_code == 403
    assert visit.get("/settings/set?key=mode&value=full").status_code == 405
    assert config(visit) == before


def test_a_key_is_stored_and_removed_and_never_comes_back(visit: Visit) -> None:
    said = visit.done("/settings/key", provider="anthropic", key=f" {KEY}\n", untried=True)["said"]
    assert "Your key for anthropic is stored in" in said
    assert KEY not in said
    assert KEY in (visit.recorded.home / "auth.json").read_text()
    for page in ("/settings/providers", "/settings", "/settings/models", "/health"):
        assert KEY not in visit.text(page)
    assert "auth.json" in visit.text("/settings/providers")
    assert visit.done("/settings/key/remove", provider="anthropic")["said"] == "The stored key was removed."
    assert KEY not in (visit.recorded.home / "auth.json").read_text()


def test_what_is_no_key_or_no_provider_is_refused_without_repeating_it(visit: Visit) -> None:
    bad = f"{KEY} and more"
    refused = visit.post("/settings/key", provider="anthropic", key=bad)
    assert (refused.status_code, refused.json()["code"]) == (400, "key-invalid")
    assert KEY not in refused.text
    assert visit.post("/settings/key", provider="nobody", key=KEY, untried=True).status_code == 400
    assert not (visit.recorded.home / "auth.json").exists()


async def test_a_key_that_its_provider_refuses_is_not_stored_and_not_repeated(visit: Visit) -> None:
    async with ScriptedServer(Script(turns=(Turn(items=(Refuse(status=401, message=f"bad key {KEY}"),)),))) as server:
        visit.book.flags.clear()
        address = {"key": "providers.anthropic.base_url", "value": server.base_url}
        asked = await asyncio.to_thread(partial(visit.done, "/settings/set", **address))
        assert server.base_url in asked["confirm"]
        assert server.base_url not in (visit.recorded.home / "config.toml").read_text()
        await asyncio.to_thread(partial(visit.done, "/settings/set", **address, sure=True))
        refused = await asyncio.to_thread(visit.post, "/settings/key", provider="anthropic", key=KEY)
    assert refused.json()["code"] == "key-refused"
    assert KEY not in refused.text
    assert not (visit.recorded.home / "auth.json").exists()


def test_a_key_that_could_not_be_tried_is_stored_after_a_question_in_place(visit: Visit) -> None:
    visit.book.flags.clear()
    visit.done("/settings/set", key="providers.anthropic.base_url", value="http://127.0.0.1:1", sure=True)
    asked = visit.done("/settings/key", provider="anthropic", key=KEY)
    assert (asked["confirm"], asked["does"]) == ("The key could not be tried. Save it all the same?", "Save it")
    assert asked["why"].startswith("Calling anthropic/")
    assert KEY not in str(asked)
    assert not (visit.recorded.home / "auth.json").exists()
    assert "is stored in" in visit.done("/settings/key", provider="anthropic", key=KEY, sure=True)["said"]
    assert KEY in (visit.recorded.home / "auth.json").read_text()
    first = Models(load_settings({})).first_model()
    assert first.startswith("anthropic/claude-")
    assert f">{first.partition('/')[2]}<" in visit.text("/"), "the start names the model that will run"


def test_a_browser_of_another_device_adds_no_key(visit: Visit) -> None:
    entrance = visit.keys.let_in(visit.keys.new_link(paired=True))
    assert entrance is not None
    visit.client.cookies.set("treadle", entrance.cookie)
    visit.client.headers["x-treadle-key"] = entrance.key
    assert visit.post("/settings/key", provider="anthropic", key=KEY, untried=True).status_code == 403
    assert "It is changed on the computer that Treadle runs on." in visit.text("/settings/providers")


def test_models_are_found_and_one_becomes_the_default(visit: Visit) -> None:
    page = visit.text("/settings/models?query=anthropic+sonnet")
    assert "anthropic/claude-" in page
    assert "No known model matches." in visit.text("/settings/models?query=zzzz")


def test_a_server_is_disabled_enabled_and_removed(visit: Visit) -> None:
    file = visit.recorded.home / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {"one": {"command": "false", "env": {"A": "b"}}}}))
    assert "not connected" in visit.text("/settings/servers")
    folder = str(visit.recorded.folder)
    visit.done("/settings/servers/switch", name="one", folder=folder, enabled=False)
    assert json.loads(file.read_text()) == {
        "mcpServers": {"one": {"command": "false", "env": {"A": "b"}, "disabled": True}}
    }
    assert ">disabled<" in visit.text("/settings/servers")
    visit.done("/settings/servers/switch", name="one", folder=folder, enabled=True)
    assert "disabled" not in file.read_text()
    assert visit.post("/settings/servers/switch", name="two", folder=folder).json()["code"] == "mcp-unknown"
    looked = visit.done("/settings/servers/look", name="one", folder=folder)
    assert "one  failed" in looked["lines"][0]
    assert visit.done("/settings/servers/log", name="one", folder=folder)["lines"]
    refused = visit.post("/settings/servers/add", name="three", folder=folder, target="false")
    assert refused.json()["code"] == "mcp-connect"
    assert visit.post("/settings/servers/add", name="three", folder=folder, target="'").status_code == 400
    visit.done("/settings/servers/remove", name="one", folder=folder)
    assert json.loads(file.read_text()) == {"mcpServers": {}}


def test_a_rule_is_turned_off_and_on(visit: Visit) -> None:
    file = visit.recorded.home / "AGENTS.md"
    file.write_text("Be short.\n")
    assert 'aria-checked="true"' in visit.text("/settings/rules")
    folder = str(visit.recorded.folder)
    visit.done("/settings/rules/turn", folder=folder, origin=str(file), on=False)
    assert 'aria-checked="false"' in visit.text("/settings/rules")
    visit.done("/settings/rules/turn", folder=folder, origin=str(file), on=True)
    assert 'aria-checked="true"' in visit.text("/settings/rules")
    assert visit.post("/settings/rules/turn", folder=folder, origin="/etc/passwd", on=False).status_code == 400


def test_hooks_are_listed_and_turned_off_together(visit: Visit) -> None:
    with (visit.recorded.home / "config.toml").open("a") as stream:
        stream.write('\n[[hooks.PreToolUse]]\nmatcher = "Bash"\nhooks = [{ command = "echo <b>hook" }]\n')
    page = visit.text("/settings/hooks")
    assert "echo &lt;b&gt;hook" in page
    assert ">runs<" in page
    visit.done("/settings/set", key="disable_all_hooks", value="true")
    assert ">does not run<" in visit.text("/settings/hooks")


def test_trust_is_taken_back(visit: Visit, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "AGENTS.md").write_text("x\n")
    trust_store().grant(whole_trust(folder))
    assert str(folder) in visit.text("/settings/folders")
    said = visit.done("/settings/folders/revoke", folder=str(folder))["said"]
    assert "is not trusted any more" in said
    assert not session_trust(folder).trusted
    assert "No folder is trusted yet." in visit.text("/settings/folders")


ASKED = {
    "base_url": "https://elsewhere.example/v1",
    "providers.openai.base_url": "https://elsewhere.example/v1",
    "providers.openai.proxy": "http://proxy.example:3128",
    "providers.openai.ca_file": "/tmp/ca.pem",
    "providers.openai.api_key_env": "AWS_SECRET_ACCESS_KEY",
    "providers.openai.token_command": '["cat", "/etc/hostname"]',
    "providers.openai.headers.X-Team": "shop",
    "providers.openai.headers": '{ X-Team = "shop" }',
    "providers.openai": '{ base_url = "https://elsewhere.example/v1", api_key_env = "HOME" }',
}
NOT_ASKED = {"theme": "dark", "providers.openai.connect_timeout": "5", "model": "openai/gpt-5"}


@pytest.mark.parametrize("key", [*ASKED, *NOT_ASKED])
def test_what_says_where_a_key_goes_or_what_goes_there_is_asked_about_before_it_is_saved(
    visit: Visit, key: str
) -> None:
    file, value = visit.recorded.home / "config.toml", {**ASKED, **NOT_ASKED}[key]
    file.write_text('model = "anthropic/claude-sonnet-4-5"\n')
    asked = visit.done("/settings/set", key=key, value=value)
    assert ("confirm" in asked) is (key in ASKED)
    assert (file.read_text() == 'model = "anthropic/claude-sonnet-4-5"\n') is (key in ASKED)
    if key in ASKED:
        host = asked["host"]
        assert asked["confirm"].endswith(f"Type its host to go on: {host}" if host else "Is that what you want?")
        assert bool(host) is (key.endswith(("base_url", "proxy")) and "127.0.0.1" not in value)
        if host:
            assert "confirm" in visit.done("/settings/set", key=key, value=value, sure=True, host=f"x{host}")
            assert file.read_text() == 'model = "anthropic/claude-sonnet-4-5"\n'
        assert "Saved in" in visit.done("/settings/set", key=key, value=value, sure=True, host=host)["said"]


def test_every_setting_of_a_provider_was_thought_of(visit: Visit) -> None:
    harmless = {field for field in ProviderSettings.__struct_fields__ if field.endswith("_timeout")} | {"wire_api"}
    asked = {key.split(".")[2] for key in ASKED if key.count(".") > 1}
    assert asked | harmless == set(ProviderSettings.__struct_fields__)

"""Keys of the person's own: they do what they are given to, and what cannot be is named."""

from pathlib import Path

import pytest

from tests.person import CTRL_C, ENTER
from tests.tui.session import session
from tests.tui.terminal import terminal
from treadle.app.config.edit import set_value
from treadle.app.config.layers import load_settings
from treadle.app.config.own_keys import KEY_ACTIONS, key_sequence, wrong_keys
from treadle.app.config.sections import Settings
from treadle.app.models.saving_model import check_setting
from treadle.app.reports.doctor_report import examine
from treadle.protocol.errors import ConfigError
from treadle.tui.draft.menus import KEYS

F2, F3, ALT_M = "\x1bOQ", "\x1bOR", "\x1bm"


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path))


def test_each_action_has_a_key_that_the_list_of_keys_explains() -> None:
    assert set(KEY_ACTIONS.values()) <= {key for key, _ in KEYS}


@pytest.mark.parametrize(
    ("key", "sequence"),
    [("ctrl-x", ("c-x",)), ("alt-m", ("escape", "m")), ("f12", ("f12",)), ("f25", ()), ("x", ()), ("Ctrl-X", ())],
)
def test_a_key_is_what_comes_from_the_terminal(key: str, sequence: tuple[str, ...]) -> None:
    assert key_sequence(key) == sequence


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"todo": "ctrl-x", "pager": "f2"}, []),
        ({"pagr": "f2"}, ["keys.pagr is no action: the nearest is pager"]),
        ({"todo": "ctrl-o"}, ["keys.todo cannot be ctrl-o: that is the key of pager"]),
        ({"todo": "ctrl-m"}, ["keys.todo cannot be ctrl-m: that is Enter to a terminal"]),
        ({"todo": "ctrl-c"}, ["keys.todo cannot be ctrl-c: that is the key that stops"]),
        (
            {"todo": "f2", "editor": "f2"},
            ["keys: f2 is given to todo and editor, and one press can do one thing only"],
        ),
        (
            {"todo": "y"},
            ["keys.todo cannot be 'y': write ctrl- and a letter, alt- and a letter or digit, or f1 to f24"],
        ),
    ],
)
def test_what_cannot_be_is_named(keys: dict[str, str], said: list[str]) -> None:
    assert wrong_keys(keys) == said


async def test_a_mistake_in_the_file_is_named_with_its_line_and_by_the_doctor(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('theme = "dark"\n\n[keys]\ntodo = "f2"\neditor = "f2"\n')
    with pytest.raises(ConfigError) as wrong:
        load_settings({})
    assert "f2 is given to todo and editor" in wrong.value.why
    checks = {check.name: check async for check in examine(offline=True)}
    assert "f2 is given to todo and editor" in checks["settings"].found
    file.write_text('[keys]\ntodo = "f2"\n')
    checks = {check.name: check async for check in examine(offline=True)}
    assert checks["settings"].found == "no mistakes; your own keys: f2 for todo"


def test_a_key_is_set_by_its_dotted_name_and_no_workspace_sets_one(tmp_path: Path) -> None:
    set_value("keys.todo", "f2", check_setting)
    assert load_settings({}).keys == {"todo": "f2"}
    with pytest.raises(ConfigError, match="wrong"):
        set_value("keys.todo", "ctrl-o", check_setting)
    (tmp_path / "ws" / ".treadle").mkdir(parents=True)
    (tmp_path / "ws" / ".treadle" / "config.toml").write_text('[keys]\ntodo = "f3"\n')
    with pytest.raises(ConfigError, match="may not set keys"):
        load_settings({}, workspace=tmp_path / "ws", trusted=True)


async def test_own_keys_work_beside_the_usual_ones_and_are_listed(tmp_path: Path) -> None:
    settings = Settings(keys={"pager": "f2", "mode": "alt-m", "new-line": "ctrl-x"})
    async with session(tmp_path) as rig, terminal(rig.live, settings=settings) as (term, _):
        await term.until("? for keys", "ask ──")
        term.type(ALT_M)
        await term.until("edits ──")
        term.type("one").type("\x18").type("two")
        await term.until("› one", "  two")
        term.type(CTRL_C)
        await term.until_gone("two")
        term.type("?")
        await term.until("f2         show all, unfolded", "alt-m      next mode", "ctrl-x     new line")
        term.type(f"/help{ENTER}")
        await term.until("f2         show all, unfolded")
        term.type(F2)
        await term.until("q back")
        term.type("q")
        await term.until_gone("q back")
        term.type(F3)
        await term.until("? for keys")

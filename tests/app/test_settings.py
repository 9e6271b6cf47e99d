from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import inspect

from treadle.app.compose import limits_of
from treadle.app.config.layers import load_settings
from treadle.app.config.sections import ModeSettings, ProviderSettings, Settings
from treadle.app.config.setting_lines import ConfigEntry, entries
from treadle.protocol.errors import ConfigError
from treadle.protocol.models import ToolProtocol
from treadle.protocol.permissions import Mode

USER = """\
# mine
model = "anthropic/claude-sonnet-4-5"
mode = "edits"

[modes.plan]
model = "openai/gpt-5"
thinking_budget = 8192

[providers.openai]
headers = { "X-Team" = "blue", "X-Cost" = "1" }
proxy = "http://proxy.local:3128"
ca_file = "/etc/ca.pem"
connect_timeout = 3
"""


@pytest.fixture(autouse=True)
def _own_variables(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("MODEL", "BASE_URL", "MODE", "TOOL_PROTOCOL", "MAX_STEPS", "THINKING_BUDGET"):
        monkeypatch.delenv(f"TREADLE_{name}", raising=False)
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path))


def _file(folder: Path, text: str, name: str = "config.toml") -> Path:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def _error(file: Path) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        load_settings({}, file)
    return caught.value


def test_without_anything_the_defaults_count(tmp_path: Path) -> None:
    assert load_settings({}, tmp_path / "none.toml") == Settings()


def test_the_file_the_environment_and_the_flags_overlay_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = _file(tmp_path, USER)
    monkeypatch.setenv("TREADLE_MAX_STEPS", "7")
    monkeypatch.setenv("TREADLE_TOOL_PROTOCOL", "xml")
    monkeypatch.setenv("TREADLE_MODE", "auto")
    settings = load_settings({"mode": "plan"}, file)
    assert settings == Settings(
        model="anthropic/claude-sonnet-4-5",
        mode=Mode.PLAN,
        tool_protocol=ToolProtocol.XML,
        max_steps=7,
        modes={Mode.PLAN: ModeSettings(model="openai/gpt-5", thinking_budget=8192)},
        providers={
            "openai": ProviderSettings(
                headers={"X-Team": "blue", "X-Cost": "1"},
                proxy="http://proxy.local:3128",
                ca_file="/etc/ca.pem",
                connect_timeout=3.0,
            )
        },
    )


def test_a_mode_may_have_its_own_model_and_budget(tmp_path: Path) -> None:
    settings = load_settings({}, _file(tmp_path, USER + "[modes.ask]\nthinking_budget = 0\n"))
    assert settings.in_mode(Mode.PLAN) == ModeSettings(model="openai/gpt-5", thinking_budget=8192)
    assert settings.in_mode(Mode.ASK) == ModeSettings(model="anthropic/claude-sonnet-4-5", thinking_budget=0)


def test_a_model_on_the_command_line_counts_over_that_of_a_mode_in_the_file(tmp_path: Path) -> None:
    settings = load_settings({"model": "groq/x"}, _file(tmp_path, USER))
    assert settings.in_mode(Mode.PLAN) == ModeSettings(model="groq/x", thinking_budget=8192)


def test_a_wrong_value_is_told_with_its_file_and_line(tmp_path: Path) -> None:
    file = _file(tmp_path, 'model = "a/b"\n\n[providers.x]\nbase_url = "http://h"\nconnect_timeout = -1\n')
    error = _error(file)
    assert (error.code, error.what) == ("config-value", f"A setting from {file}, line 5, is wrong.")


@pytest.mark.parametrize(
    ("text", "key", "why"),
    [
        ('[providers.x]\nbase_url = "not a url"\n', "providers.x.base_url", "base_url is not a base URL."),
        ('[providers.x]\nbase_url = "http://h:99999/v1"\n', "providers.x.base_url", "base_url is not a base URL."),
        ('[profiles.x]\nbase_url = "ftp://h"\n', "profiles.x.base_url", "base_url is not a base URL."),
        ('[diagnostics.a]\npattern = "("\n', "diagnostics.a.pattern", "pattern is not a regular expression"),
        (
            '[diagnostics.a]\npattern = "(?P<path>.*)"\n',
            "diagnostics.a.pattern",
            "no group (?P<line>...), (?P<message>",
        ),
    ],
)
def test_what_would_fail_at_its_first_use_is_refused_with_its_file_and_key(
    tmp_path: Path, text: str, key: str, why: str
) -> None:
    file = _file(tmp_path, text)
    error = _error(file)
    assert (error.code, error.what) == ("config-value", f"A setting from {file}, line 2, is wrong.")
    assert (why in error.why, key in error.fix) == (True, True)


NUMBERS = (
    "max_seconds",
    "budget.turn_cost",
    "budget.session_cost",
    "budget.day_cost",
    "budget.ask_at",
    "context.compact_at",
    "context.costly_request",
    'models."a/b".input_price',
    'models."a/b".output_price',
    'models."a/b".search_price',
    "providers.openai.idle_timeout",
)


@pytest.mark.parametrize("value", ["inf", "-inf", "nan", "1e999"])
@pytest.mark.parametrize("key", NUMBERS)
def test_no_number_is_infinite(tmp_path: Path, key: str, value: str) -> None:
    assert _error(_file(tmp_path, f"{key} = {value}\n")).code == "config-value"


def numbers_in(node: inspect.Type, name: str = "") -> Iterator[tuple[str, inspect.FloatType]]:
    """Every setting that is a number with a fraction, by its name."""
    match node:
        case inspect.FloatType():
            yield name, node
        case inspect.StructType(fields=fields):
            for each in fields:
                yield from numbers_in(each.type, f"{name}.{each.name}")
        case inspect.UnionType(types=types):
            for member in types:
                yield from numbers_in(member, name)
        case inspect.DictType(value_type=value):
            yield from numbers_in(value, f"{name}.*")
        case _:
            return


def test_every_number_has_a_bound() -> None:
    found = dict(numbers_in(inspect.type_info(Settings)))
    assert (len(found) > 10, [name for name, one in found.items() if one.le is None]) == (True, [])


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[nonsense]\n", 1),
        ('model = "a/b"\nmodle = "a/b"\n', 2),
        ("[modes.never]\n", 1),
        ('[models."a/b.c"]\ncontext_window = 0\n', 2),
        ('model = """\na/b"""\nmax_steps = "many"\n', 3),
        ("providers = { x = { headers = { a = 1 } } }\n", 1),
    ],
)
def test_every_kind_of_mistake_has_its_line(tmp_path: Path, text: str, line: int) -> None:
    assert f", line {line}," in _error(_file(tmp_path, text)).what


def test_a_key_in_the_file_is_refused_without_being_shown(tmp_path: Path) -> None:
    error = _error(_file(tmp_path, '[providers.openai]\napi_key = "sk-secret-in-a-file"\n'))
    assert "treadle login" in error.fix
    assert "sk-secret" not in f"{error.what}{error.why}{error.fix}"


def test_broken_toml_is_told_with_its_line(tmp_path: Path) -> None:
    error = _error(_file(tmp_path, "model = \n"))
    assert error.code == "config-syntax"
    assert "line 1" in error.why


def test_a_wrong_variable_is_told_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREADLE_MAX_STEPS", "many")
    assert "TREADLE_MAX_STEPS" in _error(tmp_path / "none.toml").what


def test_the_workspace_counts_only_when_it_is_trusted(tmp_path: Path) -> None:
    _file(tmp_path, 'model = "a/b"\nmode = "plan"\n', ".treadle/config.toml")
    user = _file(tmp_path, USER, "user.toml")
    assert load_settings({}, user, workspace=tmp_path).model == "anthropic/claude-sonnet-4-5"
    trusted = load_settings({}, user, workspace=tmp_path, trusted=True)
    assert (trusted.model, trusted.mode) == ("a/b", Mode.PLAN)
    assert trusted.in_mode(Mode.PLAN).model == "a/b"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('\nbase_url = "http://evil.example"\n', 2),
        ('[providers.openai]\nbase_url = "http://evil.example"\n', 1),
        ('[providers.openai]\napi_key_env = "AWS_SECRET"\n', 1),
        ('max_steps = 3\nmode = "full"\n', 2),
        ('mode = "auto"\n', 1),
        ('sandbox = "auto"\n', 1),
        ('[models."a/b"]\ninput_price = 0.0\n', 1),
    ],
)
def test_a_workspace_may_not_redirect_requests_widen_the_mode_or_hide_prices(
    tmp_path: Path, text: str, line: int
) -> None:
    file = _file(tmp_path, text, ".treadle/config.toml")
    with pytest.raises(ConfigError) as caught:
        load_settings({}, _file(tmp_path, USER, "user.toml"), workspace=tmp_path, trusted=True)
    assert caught.value.code == "config-workspace"
    assert f"{file}, line {line}:" in caught.value.what


@pytest.mark.parametrize(
    ("text", "line", "least"),
    [
        ("max_steps = {}\n", 1, 50),
        ("max_seconds = {}\n", 1, 600),
        ("max_auto_approved = {}\n", 1, 20),
        ("max_unasked = {}\n", 1, 20),
        ("max_retries = {}\n", 1, 3),
        ("[budget]\nsession_cost = {}\n", 1, 5),
        ("max_steps = 1\n[budget]\nday_tokens = {}\n", 2, 9000),
        ("\nthinking_budget = {}\n", 2, 1000),
        ("max_steps = 2\n[modes.plan]\nthinking_budget = {}\n", 2, 1000),
        ("[modes.ask]\nthinking_budget = {}\n", 1, 4000),
        ("[budget]\nask_at = 0.{}\n", 1, 5),
    ],
)
def test_a_workspace_may_lower_your_limits_but_not_raise_them(tmp_path: Path, text: str, line: int, least: int) -> None:
    own = (
        "max_steps = 50\nmax_retries = 3\nmax_seconds = 600\nmax_auto_approved = 20\nthinking_budget = 4000\n"
        "[modes.plan]\nthinking_budget = 1000\n"
        "[budget]\nsession_cost = 5\nday_tokens = 9000\nask_at = 0.5\n"
    )
    user = _file(tmp_path, own, "user.toml")
    _file(tmp_path, text.format(least), ".treadle/config.toml")
    load_settings({}, user, workspace=tmp_path, trusted=True)
    file = _file(tmp_path, text.format(least + 1), ".treadle/config.toml")
    with pytest.raises(ConfigError) as caught:
        load_settings({}, user, workspace=tmp_path, trusted=True)
    assert caught.value.code == "config-workspace"
    assert f"{file}, line {line}:" in caught.value.what


@pytest.mark.parametrize(
    ("text", "most"),
    [
        ("max_unasked = 5\n", 5),
        ("max_auto_approved = 5\n", 5),
        ("max_unasked = 5\nmax_auto_approved = 9\n", 5),
        ("max_unasked = 9\nmax_auto_approved = 5\n", 5),
    ],
)
def test_the_old_name_of_a_setting_still_works_and_lifts_nothing(tmp_path: Path, text: str, most: int) -> None:
    assert limits_of(load_settings({}, _file(tmp_path, text, "user.toml"))).max_auto_approved == most


def test_entries_have_the_lines_of_their_statements() -> None:
    text = 'a = 1\n\n[b."c.d"] # t\ne = [\n  1,\n  2,\n]\nf.g = { h = true }\n'
    assert list(entries(text)) == [
        ConfigEntry(path=("a",), value=1, line=1),
        ConfigEntry(path=("b", "c.d"), value={}, line=3),
        ConfigEntry(path=("b", "c.d", "e"), value=[1, 2], line=4),
        ConfigEntry(path=("b", "c.d", "f", "g", "h"), value=True, line=8),
    ]


@given(st.lists(st.sampled_from(["# note", "", 'x{} = """\n[a]\n"""', "x{} = [ # c\n 1 ]", "[t{}]", "x{} = '#'"])))
def test_any_file_gives_each_statement_once(parts: list[str]) -> None:
    text = "\n".join(part.format(number) for number, part in enumerate(parts))
    found = list(entries(text))
    assert [entry.path[-1] for entry in found] == [
        f"{'t' if part.startswith('[') else 'x'}{number}"
        for number, part in enumerate(parts)
        if part and not part.startswith("#")
    ]
    lines = text.split("\n")
    assert all(entry.path[-1] in lines[entry.line - 1] for entry in found)


def test_the_number_of_retries_is_a_setting_and_else_the_usual_one() -> None:
    assert [limits_of(Settings(max_retries=number)).max_retries for number in (None, 0, 2)] == [6, 0, 2]


@pytest.mark.parametrize(
    ("name", "why"), [("A=b", "not a variable name"), ("OPENAI_API_KEY", "commands never get a provider's key")]
)
def test_a_command_is_passed_what_the_user_names_and_no_key(tmp_path: Path, name: str, why: str) -> None:
    file = tmp_path / "user.toml"
    file.write_text('pass_variables = ["PYTHONPATH"]\n')
    assert load_settings({}, file).pass_variables == ("PYTHONPATH",)
    file.write_text(f'pass_variables = ["{name}"]\n')
    with pytest.raises(ConfigError, match="wrong") as caught:
        load_settings({}, file)
    assert why in caught.value.why


def test_a_folder_of_every_workspace_is_named_absolutely_and_by_the_user_alone(tmp_path: Path) -> None:
    file = tmp_path / "user.toml"
    file.write_text('add_dirs = ["~/a", "/b"]\n')
    assert load_settings({}, file).add_dirs == ("~/a", "/b")
    file.write_text('add_dirs = ["../a"]\n')
    with pytest.raises(ConfigError, match="wrong") as caught:
        load_settings({}, file)
    assert "neither absolute nor begins with '~/'" in caught.value.why
    file.write_text("")
    (tmp_path / ".treadle").mkdir()
    (tmp_path / ".treadle" / "config.toml").write_text('add_dirs = ["/b"]\n')
    with pytest.raises(ConfigError, match="a workspace may not set add_dirs"):
        load_settings({}, file, workspace=tmp_path, trusted=True)


def test_what_is_dangerous_cannot_be_approved_by_a_setting(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('approve = ["read_outside", "critical"]\n')
    with pytest.raises(ConfigError) as raised:
        load_settings({}, file)
    assert "dangerous calls always ask" in (raised.value.why or "")

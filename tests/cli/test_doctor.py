import asyncio
import json
from datetime import date, timedelta
from pathlib import Path

import pytest

from tests.app.local_servers import Asked, http_server, ollama
from tests.cli.conftest import Command
from tests.e2e.running import PATIENCE
from treadle.providers.local import find_servers
from treadle.providers.model_data import built_in_models
from treadle.workspace.programs import program_process
from treadle.workspace.sandbox.backend import Backend, SandboxState


def _checks(text: str) -> dict[str, tuple[str, str]]:
    return {row["name"]: (row["status"], row["found"]) for row in map(json.loads, text.splitlines())}


def test_an_empty_installation_is_well(treadle: Command) -> None:
    said = treadle("doctor", "--offline", "--json")
    checks = _checks(said.out)
    assert said.code == 0
    assert {"treadle", "python", "data folder", "database", "ripgrep", "git", "sandbox", "settings"} <= checks.keys()
    assert checks["keys"] == ("warn", "no provider has a key")
    assert checks["local servers"] == ("ok", "none found")


@pytest.mark.parametrize("words", [["doctor", "--offline"], ["sessions"], ["copies"], ["memory"], ["usage"]])
def test_whoever_makes_the_data_folder_makes_it_for_its_user_alone(
    treadle: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "new" / "home"))
    treadle(*words)
    made = [one for one in (tmp_path / "new" / "home", *(tmp_path / "new").rglob("*")) if one.is_dir()]
    assert {one.stat().st_mode & 0o077 for one in made} <= {0}


def test_what_is_optional_is_information_on_one_line(
    treadle: Command, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GROQ_API_KEY", "gsk-test-12345678")
    monkeypatch.chdir(home)
    monkeypatch.setattr("treadle.app.reports.installation.missing_packages", lambda extra: ("p",))
    for name in ("TREADLE_RG", "TREADLE_CHROMIUM"):
        monkeypatch.setenv(name, str(home / "nothing"))
    said = treadle("doctor", "--offline")
    lines = [line for line in said.out.splitlines() if "extra" in line]
    assert len(lines) == 1
    assert lines[0].startswith("ok    extras: installed: none; not installed (optional): acp, bedrock, ")
    others = [
        one
        for one in said.out.splitlines()
        if not one.startswith(("ok ", "      fix", "warn  sandbox", "warn  list of models"))
    ]
    assert others[:-1] == []
    assert others[-1] in ("Everything is OK.", "1 warning.")


def test_an_address_that_nobody_owns_is_a_failure(
    treadle: Command, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home)
    monkeypatch.setenv("TREADLE_BASE_URL", "http://127.0.0.1:1")
    said = treadle("doctor", "--offline")
    assert (said.code, "fail  settings: A base URL was given without a model." in said.out) == (1, True)
    assert said.out.endswith("\n1 failure.\n")


def test_the_trust_in_this_folder_is_told(treadle: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    told = [_checks(treadle("doctor", "--offline", "--json").out)["this folder"]]
    (work / "AGENTS.md").write_text("rules")
    told.append(_checks(treadle("doctor", "--offline", "--json").out)["this folder"])
    treadle("trust", "--yes")
    told.append(_checks(treadle("doctor", "--offline", "--json").out)["this folder"])
    assert told == [
        ("ok", "not trusted; it has no rules, settings, servers or hooks"),
        ("warn", f"untrusted: not used: AGENTS.md. To use them: `treadle trust {work}`, or --trust for one run."),
        ("ok", "trusted"),
    ]


def test_a_mistake_in_the_settings_fails_with_its_line(treadle: Command, home: Path) -> None:
    (home / "config.toml").write_text("\nmode = 5\n")
    said = treadle("doctor", "--offline")
    assert said.code == 1
    assert f"fail  settings: A setting from {home}/config.toml, line 2, is wrong." in said.out


def test_the_size_of_kept_outputs_is_told(treadle: Command, home: Path) -> None:
    (home / "output" / "a-session").mkdir(parents=True)
    (home / "output" / "a-session" / "output-1.txt").write_bytes(b"x" * 3 * 1024 * 1024)
    told = _checks(treadle("doctor", "--offline", "--json").out)["command output"]
    assert told[0] == "ok"
    assert told[1].startswith(f"3.0 MiB of 1 session in {home}/output; ")


def test_a_damaged_database_fails(treadle: Command, home: Path) -> None:
    (home / "sessions.db").write_bytes(b"not a database at all" * 100)
    said = treadle("doctor", "--offline", "--json")
    assert said.code == 1
    assert _checks(said.out)["database"][0] == "fail"


def test_a_folder_that_cannot_be_one_fails(treadle: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "file" / "home"))
    said = treadle("doctor", "--offline", "--json")
    assert said.code == 1
    assert _checks(said.out)["data folder"][0] == "fail"


def test_a_damaged_file_of_keys_fails(treadle: Command, home: Path) -> None:
    (home / "auth.json").write_text("{")
    (home / "auth.json").chmod(0o600)
    said = treadle("doctor", "--json")
    assert said.code == 1
    status, found = _checks(said.out)["keys"]
    assert (status, found.split(".json")[0]) == ("fail", f"The key file {home}/auth")


async def test_each_configured_provider_is_called_once(
    treadle: Command, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []

    def answer(asked: Asked) -> tuple[int, object]:
        calls.append(json.loads(asked.body)["model"])
        return 401, {"error": {"message": "no", "code": "invalid_api_key"}}

    monkeypatch.setenv("GROQ_API_KEY", "gsk-test-12345678")
    monkeypatch.setenv("XAI_API_KEY", "xai-test-12345678")
    async with http_server(answer) as url:
        with (home / "config.toml").open("a") as file:
            file.write("".join(f'[providers.{name}]\nbase_url = "{url}/v1"\n' for name in ("groq", "xai")))
        said = await asyncio.to_thread(treadle, "doctor", "--json")
    checks = _checks(said.out)
    assert said.code == 1
    assert sorted(calls) == ["grok-4.7", "qwen/qwen3.8-27b"]
    assert checks["key groq"] == ("ok", "from GROQ_API_KEY")
    status, found = checks["call xai/grok-4.7"]
    assert (status, "The key comes from XAI_API_KEY and ends in …5678." in found) == ("fail", True)
    assert checks["call groq/qwen/qwen3.8-27b"][0] == "warn", "its variable may be there for other reasons"


async def test_a_small_window_of_a_local_server_is_a_warning(
    treadle: Command, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(find_servers, "__kwdefaults__", {"limit": PATIENCE})  # a busy machine answers late
    async with http_server(ollama) as url:
        (home / "config.toml").write_text((home / "config.toml").read_text().replace("http://127.0.0.1:1", url, 1))
        said = await asyncio.to_thread(treadle, "doctor", "--offline")
    assert said.code == 0
    assert "ok    local ollama: 3 models" in said.out
    assert "warn  local ollama/gemma3:4b: gemma3:4b holds 4,096 tokens" in said.out


def test_the_doctor_finds_the_browser_that_the_tool_would_take(
    treadle: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "my-browser"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("TREADLE_CHROMIUM", str(program))
    assert f"ok    chromium: {program}" in treadle("doctor").out


@pytest.mark.parametrize(("age", "status"), [(0, "ok"), (59, "ok"), (61, "warn"), (400, "warn")])
def test_an_old_list_of_models_is_a_warning(
    treadle: Command, monkeypatch: pytest.MonkeyPatch, age: int, status: str
) -> None:
    made = date.fromisoformat(built_in_models().data.date)
    monkeypatch.setattr(
        "treadle.app.reports.doctor_report.day", lambda ahead: (made + timedelta(age + ahead)).isoformat()
    )
    found, text = _checks(treadle("doctor", "--offline", "--json").out)["list of models"]
    assert (found, f"Data of {made}" in text) == (status, True)


def test_a_damaged_list_of_models_is_a_warning(treadle: Command, home: Path) -> None:
    (home / "models.json").write_text("{")
    found, text = _checks(treadle("doctor", "--offline", "--json").out)["list of models"]
    assert (found, "cannot be read" in text) == ("warn", True)


def test_the_doctor_says_whether_programs_of_code_mode_can_be_shut_off(
    treadle: Command, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home)
    assert "code mode" not in _checks(treadle("doctor", "--offline", "--json").out)
    (home / "config.toml").write_text("code_mode = true\n")
    for state, status, words in (
        (SandboxState(backend=Backend.BUBBLEWRAP, program="/usr/bin/bwrap"), "ok", "programs run shut off"),
        (
            SandboxState(backend=Backend.LANDLOCK, reason="none; Landlock 6 takes its place"),
            "warn",
            "Landlock does not",
        ),
        (SandboxState(backend=None, reason="bubblewrap is not installed"), "warn", "(bubblewrap is not installed)"),
    ):
        monkeypatch.setattr(program_process, "probe", lambda state=state: state)
        found = _checks(treadle("doctor", "--offline", "--json").out)["code mode"]
        assert (found[0], words in found[1]) == (status, True), found


@pytest.mark.parametrize("of_folder", [False, True])
@pytest.mark.parametrize(
    ("text", "said_of_it"),
    [
        (
            '[diagnostics.a]\ncommand = "lint"\nfiles = ["*"]\npattern = "(?P<path>.*)"\n',
            "config.toml, line 4, is wrong",
        ),
        ('[diagnostics.a]\ncommand = "lint"\n', "The setting diagnostics.a cannot be used."),
    ],
)
def test_what_keeps_a_session_from_starting_is_no_setting_without_mistakes(
    treadle: Command, home: Path, monkeypatch: pytest.MonkeyPatch, text: str, said_of_it: str, of_folder: bool
) -> None:
    folder = home / "ws"
    (folder / ".treadle").mkdir(parents=True)
    (folder / ".treadle" / "config.toml" if of_folder else home / "config.toml").write_text(text)
    monkeypatch.chdir(folder)
    if of_folder:
        assert treadle("trust", str(folder), "--yes").code == 0
    said = treadle("doctor", "--offline")
    assert (said.code, "no mistakes" in said.out) == (1, False)
    assert said_of_it in said.out

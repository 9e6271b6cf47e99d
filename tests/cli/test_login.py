import asyncio
import io
import json
import sys
from pathlib import Path

import pytest

from tests.app.local_servers import Asked, http_server
from tests.cli.conftest import Command, Said
from tests.e2e.process import Program
from treadle.app.models.provider_keys import key_file

SECRET = "sk-test-2718281828459045"
REPLY = b"""\
data: {"id":"1","choices":[{"index":0,"delta":{"role":"assistant","content":"ok"}}]}

data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":1}}

data: [DONE]

"""


def provider(asked: Asked) -> tuple[int, object]:
    """Take one key, refuse the others as vendors do, with the key in the message."""
    given = asked.headers.get("authorization", "").removeprefix("Bearer ")
    if given == SECRET:
        return 200, REPLY
    if given == "sk-poor-3141592653":
        return 402, {"error": {"message": f"{given} has insufficient balance"}}
    if given == "sk-no-access-1618":
        return 403, {"error": {"message": f"{given} may not use this model"}}
    if given == "sk-no-model-1618":
        return 404, {"error": {"message": "no such model"}}
    return 401, {"error": {"message": f"Incorrect API key provided: {given}", "code": "invalid_api_key"}}


async def _login(treadle: Command, monkeypatch: pytest.MonkeyPatch, key: str, *flags: str, down: bool = False) -> Said:
    async with http_server(provider) as url:
        home = key_file().parent
        (home / "config.toml").write_text(
            f'[providers.groq]\nbase_url = "{"http://127.0.0.1:1" if down else url}/v1"\n'
        )
        monkeypatch.setattr(sys, "stdin", io.StringIO(f"{key}\n"))
        return await asyncio.to_thread(treadle, "login", "groq", "--key-stdin", *flags)


async def test_a_key_is_tried_and_stored(treadle: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    said = await _login(treadle, monkeypatch, SECRET)
    assert (said.code, said.err) == (0, "")
    assert said.out == f"Your key for groq is stored in {key_file()} (groq/qwen/qwen3.8-27b: it answered).\n"
    assert json.loads(key_file().read_text())["keys"] == {"groq": SECRET}


async def test_a_key_without_balance_is_stored_and_said(treadle: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    said = await _login(treadle, monkeypatch, "sk-poor-3141592653")
    assert (said.code, "balance" in said.out) == (0, True)
    assert "sk-poor" not in said.out


@pytest.mark.parametrize("key", ["sk-wrong-161803398", "sk-no-access-1618", "", "a b"])
async def test_a_key_that_does_not_work_is_not_stored_nor_shown(
    treadle: Command, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    said = await _login(treadle, monkeypatch, key)
    assert said.code == 78
    assert not key or key not in said.out + said.err
    assert not key_file().exists()


@pytest.mark.parametrize(("key", "down"), [(SECRET, True), ("sk-no-model-1618", False)])
async def test_a_key_of_which_nobody_said_that_it_is_wrong_is_kept(
    treadle: Command, monkeypatch: pytest.MonkeyPatch, key: str, down: bool
) -> None:
    said = await _login(treadle, monkeypatch, key, down=down)
    assert (said.code, said.err) == (0, "")
    assert said.out.startswith(
        f"Your key for groq is stored in {key_file()}, but it was not checked with groq/qwen/qwen3.8-27b. "
    )
    assert key not in said.out
    assert json.loads(key_file().read_text())["keys"] == {"groq": key}


async def test_a_key_is_kept_where_no_model_is_known_to_try_it_with(
    treadle: Command, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "config.toml").write_text('[providers.mine]\nbase_url = "http://127.0.0.1:1"\n')
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{SECRET}\n"))
    said = await asyncio.to_thread(treadle, "login", "mine", "--key-stdin")
    assert (said.code, "but it was not checked with mine. No model of mine is known" in said.out) == (0, True)


async def test_a_refused_key_names_the_page_of_keys_and_other_ways(
    treadle: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = await _login(treadle, monkeypatch, "sk-wrong-161803398")
    assert "Get a key at https://console.groq.com/keys." in wrong.err
    assert "--no-check" not in wrong.err
    forbidden = await _login(treadle, monkeypatch, "sk-no-access-1618")
    assert "--model NAME, or store it with --no-check" in forbidden.err


async def test_a_key_can_be_stored_untried(treadle: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    said = await _login(treadle, monkeypatch, SECRET, "--no-check", down=True)
    assert (said.code, "(untried)" in said.out) == (0, True)


async def test_the_environment_that_counts_before_is_told(treadle: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROQ_API_KEY", "gsk-from-the-environment")
    said = await _login(treadle, monkeypatch, SECRET)
    assert "GROQ_API_KEY is set in the environment and overrides it." in said.out


async def test_logout_forgets_the_key(treadle: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    await _login(treadle, monkeypatch, SECRET)
    assert treadle("logout", "groq").out == "The stored key was removed.\n"
    assert treadle("logout", "groq").out == "No key was stored.\n"
    assert SECRET not in key_file().read_text()


async def test_a_stored_key_appears_in_no_output(
    treadle: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """After every command that meets the key, only the file of keys has it."""
    async with http_server(provider) as url:
        home = key_file().parent
        with (home / "config.toml").open("a") as file:
            file.write(f'[providers.groq]\nbase_url = "{url}/v1"\nheaders = {{ "X-Also" = "{SECRET}" }}\n')
        monkeypatch.setattr(sys, "stdin", io.StringIO(SECRET))
        login = await asyncio.to_thread(treadle, "login", "groq", "--key-stdin")
        commands = (
            ("-p", "say ok", "--model", "groq/openai/gpt-oss-120b", "--directory", str(tmp_path), "--mode", "full"),
            ("doctor",),
            ("doctor", "--json"),
            ("config",),
            ("config", "--json"),
            ("providers",),
            ("providers", "--json"),
            ("models", "groq"),
            ("sessions", "--all", "--json"),
            ("show", "2", "--events"),
        )
        said = [await Program(home).run(*command) for command in commands]
    assert (login.code, [one.code for one in said[1:]]) == (0, [0] * (len(commands) - 1))
    assert f"from {key_file()}" in said[1].out
    assert "say ok" in said[-1].out
    assert SECRET not in login.out + login.err + "".join(one.out + one.err for one in said)
    holding = [file.name for file in home.rglob("*") if file.is_file() and SECRET.encode() in file.read_bytes()]
    assert sorted(holding) == ["auth.json", "config.toml"]

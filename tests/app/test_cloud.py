"""Accounts of AWS and Google: where they are found, and what they lead to."""

import json
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.providers.support import collect, failure_of, request
from treadle.app.config.sections import ProviderSettings, Settings
from treadle.app.models.aws import AwsAccount, aws_account, aws_region
from treadle.app.models.model_choice import Models
from treadle.app.models.model_rows import provider_lines
from treadle.protocol.errors import ConfigError
from treadle.protocol.models import ErrorKind, StreamStop, StreamText
from treadle.providers.scripted.script import SayText, Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer

KEYS = {"AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "the-secret", "AWS_REGION": "eu-west-1"}
CLAUDE = "bedrock/anthropic.claude-sonnet-4-5-20250929-v1:0"
GEMINI = "vertex/gemini-2.5-pro"
SAYS_HI = Script(turns=(Turn(items=(SayText(text="Hi"),)),))


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))


def aws_files(home: Path, config: str = "", credentials: str = "") -> dict[str, str]:
    (home / ".aws").mkdir(exist_ok=True)
    (home / ".aws" / "config").write_text(config)
    (home / ".aws" / "credentials").write_text(credentials)
    return {"HOME": str(home)}


def test_keys_in_variables_count_over_a_profile(tmp_path: Path) -> None:
    environment = aws_files(tmp_path, credentials="[default]\naws_access_key_id=X\naws_secret_access_key=Y\n")
    found = aws_account({**environment, **KEYS, "AWS_SESSION_TOKEN": "T"})
    assert found == AwsAccount(
        origin="AWS_ACCESS_KEY_ID", access_key="AKID", secret_key="the-secret", session_token="T"
    )
    assert "the-secret" not in repr(found)


def test_a_profile_has_its_keys_and_region_in_two_files(tmp_path: Path) -> None:
    environment = aws_files(
        tmp_path,
        "[default]\nregion = us-east-1\n[profile work]\nregion = eu-north-1\n",
        "[work]\naws_access_key_id = A\naws_secret_access_key = B%\n",
    )
    work = {**environment, "AWS_PROFILE": "work"}
    assert aws_account(work) == AwsAccount(origin="profile work", profile="work", access_key="A", secret_key="B%")
    assert (aws_region(work), aws_region(environment)) == ("eu-north-1", "us-east-1")
    assert aws_region({**work, "AWS_DEFAULT_REGION": "ap-south-1"}) == "ap-south-1"
    assert aws_account(environment) is None


@pytest.mark.parametrize(
    "line", ["role_arn = arn:x", "sso_session = s", "credential_process = /bin/x", "sso_start_url = https://x"]
)
def test_a_profile_whose_keys_must_be_fetched_is_told_apart(tmp_path: Path, line: str) -> None:
    environment = aws_files(tmp_path, f"[profile work]\n{line}\n")
    found = aws_account({**environment, "AWS_PROFILE": "work"})
    assert found == AwsAccount(origin="profile work", profile="work")


def test_a_profile_that_is_not_there_and_a_damaged_file_are_said(tmp_path: Path) -> None:
    environment = aws_files(tmp_path, credentials="aws_secret_access_key = hidden\n")
    with pytest.raises(ConfigError) as damaged:
        aws_account(environment)
    assert (damaged.value.code, "hidden" in str(damaged.value)) == ("aws-files", False)
    with pytest.raises(ConfigError) as missing:
        aws_account({"HOME": str(tmp_path / "nowhere"), "AWS_PROFILE": "work"})
    assert missing.value.code == "aws-profile"


async def test_bedrock_is_called_signed_with_the_keys_of_the_environment() -> None:
    async with ScriptedServer(SAYS_HI) as server:
        models = Models(Settings(model=CLAUDE, base_url=server.base_url), KEYS)
        events = await collect(models.provider(CLAUDE), request())
        proof = server.requests[0].headers["authorization"]
    assert isinstance(events[-1], StreamStop)
    assert proof.startswith(f"AWS4-HMAC-SHA256 Credential=AKID/{datetime.now(UTC):%Y}")
    assert "/eu-west-1/bedrock/aws4_request" in proof


async def test_a_bearer_token_counts_over_an_account() -> None:
    async with ScriptedServer(SAYS_HI) as server:
        models = Models(
            Settings(model=CLAUDE, base_url=server.base_url), {**KEYS, "AWS_BEARER_TOKEN_BEDROCK": "bearer"}
        )
        await collect(models.provider(CLAUDE), request())
        assert server.requests[0].headers["authorization"] == "Bearer bearer"


async def test_the_keys_of_a_program_are_fetched_by_the_library_of_aws(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = json.dumps({"Version": 1, "AccessKeyId": "FETCHED", "SecretAccessKey": "S", "SessionToken": "T"})
    program = tmp_path / "keys.py"
    program.write_text(f"print({keys!r})")
    config = f"[profile work]\nregion = eu-west-1\ncredential_process = {sys.executable} {program}\n"
    environment = {**aws_files(tmp_path, config), "AWS_PROFILE": "work"}
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / ".aws" / name.split("_")[-2].lower()))
    async with ScriptedServer(SAYS_HI) as server:
        models = Models(Settings(model=CLAUDE, base_url=server.base_url), environment)
        await collect(models.provider(CLAUDE), request())
        headers = server.requests[0].headers
    assert headers["authorization"].startswith("AWS4-HMAC-SHA256 Credential=FETCHED/")
    assert headers["x-amz-security-token"] == "T"


def test_without_any_proof_every_way_to_one_is_said(tmp_path: Path) -> None:
    for ref, way in ((CLAUDE, "AWS_PROFILE"), ("vertex/gemini-2.5-pro", "gcloud auth application-default login")):
        with pytest.raises(ConfigError) as refused:
            Models(Settings(), {"HOME": str(tmp_path), "AWS_REGION": "x", "GOOGLE_CLOUD_PROJECT": "p"}).provider(ref)
        assert (refused.value.code, way in refused.value.fix) == ("key-missing", True)


def test_the_list_of_providers_names_the_account(tmp_path: Path) -> None:
    lines = {line.name: line for line in provider_lines(Models(Settings(), {"HOME": str(tmp_path), **KEYS}))}
    bedrock = lines["bedrock"]
    assert (bedrock.key_origin, bedrock.configured, bedrock.problem) == ("AWS_ACCESS_KEY_ID", True, "")
    assert bedrock.base_url == "https://bedrock-runtime.eu-west-1.amazonaws.com"
    assert (lines["vertex"].configured, lines["anthropic"].configured) == (False, False)


def test_the_address_of_vertex_follows_the_location_and_the_project_of_the_account(tmp_path: Path) -> None:
    file = tmp_path / "service.json"
    file.write_text(json.dumps({"type": "service_account", "project_id": "mine"}))
    environment = {"GOOGLE_APPLICATION_CREDENTIALS": str(file)}
    models = Models(Settings(), environment)
    assert models.base_url(models.row("vertex")) == (
        "https://aiplatform.googleapis.com/v1/projects/mine/locations/global/publishers/google"
    )
    models = Models(Settings(), {**environment, "GOOGLE_CLOUD_LOCATION": "europe-west4"})
    assert models.base_url(models.row("vertex-anthropic")) == (
        "https://europe-west4-aiplatform.googleapis.com/v1/projects/mine/locations/europe-west4/publishers/anthropic"
    )


async def test_a_token_of_a_program_goes_into_the_call(tmp_path: Path) -> None:
    program = tmp_path / "token.py"
    program.write_text("print('short-lived')")
    said = ProviderSettings(token_command=(sys.executable, str(program)))
    async with ScriptedServer(SAYS_HI) as server:
        models = Models(Settings(model=GEMINI, providers={"vertex": said}, base_url=f"{server.base_url}/v1beta"), {})
        assert models.proof(models.row("vertex")) == f"the command {sys.executable}"
        events = await collect(models.provider(GEMINI), request())
        assert server.requests[0].headers["authorization"] == "Bearer short-lived"
    assert events[0] == StreamText(text="Hi")


@pytest.mark.parametrize(
    ("code", "why"),
    [("import sys; sys.exit('please log in')", "please log in"), ("", "it printed no token")],
)
async def test_a_token_command_that_fails_is_an_error_of_the_key(tmp_path: Path, code: str, why: str) -> None:
    said = ProviderSettings(token_command=(sys.executable, "-c", code))
    models = Models(Settings(model=GEMINI, providers={"vertex": said}, base_url="http://127.0.0.1:9"), {})
    failed = await failure_of(models.provider(GEMINI), request())
    assert (failed.error.kind, why in failed.error.message) == (ErrorKind.AUTHENTICATION, True)


async def test_a_token_command_that_is_not_there_is_an_error_of_the_key() -> None:
    said = ProviderSettings(token_command=("/nowhere/gcloud", "auth"))
    models = Models(Settings(model=GEMINI, providers={"vertex": said}, base_url="http://127.0.0.1:9"), {})
    failed = await failure_of(models.provider(GEMINI), request())
    assert (failed.error.kind, "'/nowhere/gcloud' did not run" in failed.error.message) == (
        ErrorKind.AUTHENTICATION,
        True,
    )


async def test_a_service_account_that_cannot_be_used_is_an_error_of_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "service.json"
    file.write_text(json.dumps({"type": "service_account", "project_id": "mine"}))
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))
    models = Models(
        Settings(model=GEMINI, base_url="http://127.0.0.1:9"), {"GOOGLE_APPLICATION_CREDENTIALS": str(file)}
    )
    failed = await failure_of(models.provider(GEMINI), request())
    assert failed.error.kind is ErrorKind.AUTHENTICATION

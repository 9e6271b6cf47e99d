"""Providers in a cloud: addresses with a region, and proofs that are more than a fixed key."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from treadle.app.models.aws import aws_account, aws_region
from treadle.protocol.errors import ConfigError
from treadle.providers.endpoint import Endpoint
from treadle.providers.provider_rows import Proof, ProviderRow

if TYPE_CHECKING:
    from treadle.app.models.aws import AwsAccount
    from treadle.providers.wire import Authorizer

MakeAuthorizer = Callable[[Endpoint], "Authorizer"]
_GOOGLE_FILE = Path("gcloud") / "application_default_credentials.json"


def address_variables(row: ProviderRow, environment: Mapping[str, str]) -> Mapping[str, str]:
    """Give the variables for a row's address: the environment's, and what follows from the clouds' own files."""
    if "{AWS_REGION}" in row.base_url and not environment.get("AWS_REGION"):
        region = aws_region(environment)
        return {**environment, "AWS_REGION": region} if region else environment
    if row.proof is Proof.GOOGLE:
        place = environment.get("GOOGLE_CLOUD_LOCATION") or "global"
        project = environment.get("GOOGLE_CLOUD_PROJECT") or _google_project(environment)
        host = "aiplatform.googleapis.com" if place == "global" else f"{place}-aiplatform.googleapis.com"
        found = {**environment, "GOOGLE_CLOUD_LOCATION": place, "VERTEX_HOST": host}
        return {**found, "GOOGLE_CLOUD_PROJECT": project} if project else found
    return environment


def proof_origin(row: ProviderRow, environment: Mapping[str, str], command: Sequence[str] = ()) -> str:
    """Name where a provider's proof comes from when there is no key; empty for nowhere. Raises `ConfigError`."""
    if command:
        return f"the command {command[0]}"
    match row.proof:
        case Proof.KEY:
            return ""
        case Proof.AWS:
            account = aws_account(environment)
            return "" if account is None else account.origin
        case Proof.GOOGLE:
            file = _google_file(environment)
            return "" if file is None else str(file)


def find_authorizer(
    row: ProviderRow, environment: Mapping[str, str], command: Sequence[str] = ()
) -> MakeAuthorizer | None:
    """Find what proves who asks when there is no key; None where there is nothing.

    Raises `ConfigError`, and `ModuleNotFoundError` where the extra is missing that fetches it.
    """
    if command:
        return lambda endpoint: _command_tokens(endpoint, command)
    match row.proof:
        case Proof.KEY:
            return None
        case Proof.AWS:
            account = aws_account(environment)
            return None if account is None else _aws(account, aws_region(environment))
        case Proof.GOOGLE:
            return None if _google_file(environment) is None else _google()


def _aws(account: "AwsAccount", region: str) -> MakeAuthorizer:
    from treadle.providers.aws_signature import AwsCredentials, AwsSigner

    if not region:
        what = "The AWS region is not known."
        raise ConfigError("aws-region", what, fix="Set AWS_REGION, or region in the profile.")
    fixed = AwsCredentials(
        access_key=account.access_key, secret_key=account.secret_key, session_token=account.session_token
    )

    async def given() -> AwsCredentials:
        return fixed

    if account.access_key:
        return lambda _: AwsSigner(given, region=region, service="bedrock", now=lambda: datetime.now(UTC))
    from treadle.providers.aws_sources import FetchedCredentials

    return lambda endpoint: AwsSigner(
        FetchedCredentials(endpoint, account.profile), region=region, service="bedrock", now=lambda: datetime.now(UTC)
    )


def _google() -> MakeAuthorizer:
    from treadle.providers.google_tokens import GoogleTokens
    from treadle.providers.tokens import BearerTokens

    return lambda endpoint: BearerTokens(GoogleTokens(endpoint).fetch, clock=time.monotonic)


def _command_tokens(endpoint: Endpoint, command: Sequence[str]) -> "Authorizer":
    from treadle.providers.token_command import run_token_command
    from treadle.providers.tokens import BearerTokens

    return BearerTokens(lambda: run_token_command(endpoint, command), clock=time.monotonic)


def _google_file(environment: Mapping[str, str]) -> Path | None:
    """The file of a service account, or of `gcloud auth application-default login`."""
    named = environment.get("GOOGLE_APPLICATION_CREDENTIALS")
    if named:
        return Path(named)
    home = Path(environment.get("HOME") or "~").expanduser()
    folder = environment.get("CLOUDSDK_CONFIG")
    file = Path(folder) / _GOOGLE_FILE.name if folder else home / ".config" / _GOOGLE_FILE
    return file if os.access(file, os.R_OK) and file.is_file() else None


def _google_project(environment: Mapping[str, str]) -> str:
    """The project that the account's file names."""
    file = _google_file(environment)
    try:
        value = msgspec.json.decode(file.read_bytes()) if file is not None else {}
    except (OSError, msgspec.DecodeError):
        return ""
    named = value.get("project_id") or value.get("quota_project_id") if isinstance(value, dict) else ""
    return named if isinstance(named, str) else ""

"""What the environment and the files of AWS say: the region, and who asks."""

from collections.abc import Mapping
from pathlib import Path

from treadle.protocol.base import Record
from treadle.protocol.errors import ConfigError

_FETCHED = ("role_arn", "sso_session", "sso_start_url", "credential_process", "web_identity_token_file")
_FETCHED_VARIABLES = (
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
)


class AwsAccount(Record, frozen=True, kw_only=True):
    """Who asks. Without keys they must be fetched; the representation shows where they come from alone."""

    origin: str
    profile: str = ""
    access_key: str = ""
    secret_key: str = ""
    session_token: str = ""

    def __repr__(self) -> str:
        """Show no key."""
        return f"AwsAccount(origin={self.origin!r})"

    __str__ = __repr__


def aws_account(environment: Mapping[str, str]) -> AwsAccount | None:
    """Find the account as AWS's own programs do: variables, then the profile; None where there is none.

    The metadata service of a machine is not asked: where there is none, that takes seconds. Raises `ConfigError`
    where a file cannot be read or the profile that is named is not there.
    """
    if environment.get("AWS_ACCESS_KEY_ID") and environment.get("AWS_SECRET_ACCESS_KEY"):
        return AwsAccount(
            origin="AWS_ACCESS_KEY_ID",
            access_key=environment["AWS_ACCESS_KEY_ID"].strip(),
            secret_key=environment["AWS_SECRET_ACCESS_KEY"].strip(),
            session_token=environment.get("AWS_SESSION_TOKEN", "").strip(),
        )
    fetched = next((name for name in _FETCHED_VARIABLES if environment.get(name)), "")
    if fetched:
        return AwsAccount(origin=fetched)
    name = environment.get("AWS_PROFILE", "") or environment.get("AWS_DEFAULT_PROFILE", "")
    profile = _profile(environment)
    if name and not profile:
        what = f"AWS_PROFILE names {name!r}, which is not in the AWS files."
        raise ConfigError("aws-profile", what, fix="Correct it, or run: aws configure --profile NAME")
    origin = f"profile {name or 'default'}"
    if any(profile.get(key) for key in _FETCHED):
        return AwsAccount(origin=origin, profile=name)
    if profile.get("aws_access_key_id") and profile.get("aws_secret_access_key"):
        return AwsAccount(
            origin=origin,
            profile=name,
            access_key=profile["aws_access_key_id"],
            secret_key=profile["aws_secret_access_key"],
            session_token=profile.get("aws_session_token", ""),
        )
    return None


def aws_region(environment: Mapping[str, str]) -> str:
    """Find the region: variables, then the profile; empty where none is said. Raises `ConfigError`."""
    said = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION")
    return said or _profile(environment).get("region", "")


def _profile(environment: Mapping[str, str]) -> Mapping[str, str]:
    """The values of the profile that counts, from both files."""
    name = environment.get("AWS_PROFILE", "") or environment.get("AWS_DEFAULT_PROFILE", "") or "default"
    home = Path(environment.get("HOME") or "~").expanduser() / ".aws"
    config = Path(environment.get("AWS_CONFIG_FILE") or home / "config").expanduser()
    secret = Path(environment.get("AWS_SHARED_CREDENTIALS_FILE") or home / "credentials").expanduser()
    section = name if name == "default" else f"profile {name}"
    return {**_section(config, section), **_section(secret, name)}


def _section(file: Path, section: str) -> Mapping[str, str]:
    import configparser

    parser = configparser.RawConfigParser(default_section="")
    try:
        parser.read_string(file.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, UnicodeDecodeError, configparser.Error) as error:
        why = type(error).__name__  # the text of the error may quote a key
        raise ConfigError("aws-files", f"{file} cannot be read.", why=why, fix="Fix it, or move it away.") from error
    return dict(parser[section]) if parser.has_section(section) else {}

"""A store of workers in a bucket of S3, or of anything that speaks its protocol. Keys and address are those of AWS.

`AWS_ENDPOINT_URL_S3` names another server; how requests are signed is botocore's, the one of the extra `s3`.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from treadle.door.reports import install_command
from treadle.protocol.errors import ConfigError

_T = TypeVar("_T")

_AN_ANSWER = 1_000
"""Objects that one answer names."""


class BucketStore:
    """The four calls on a bucket, below a prefix that is empty or ends with a slash. Raises `ConfigError`."""

    def __init__(self, place: str) -> None:
        bucket, _, prefix = place.removeprefix("s3://").partition("/")
        self._bucket = bucket
        self._prefix = f"{prefix.strip('/')}/" if prefix.strip("/") else ""
        try:
            from botocore.config import Config
            from botocore.exceptions import BotoCoreError, ClientError
            from botocore.session import get_session
        except ImportError as error:
            raise ConfigError(
                "fleet-store",
                "What talks to S3 is not installed.",
                why=f"{place} needs the extra `s3` of Treadle: {error}.",
                fix=f"{install_command('s3')}, or name a folder with --store that all workers see.",
            ) from error
        self._errors = (BotoCoreError, ClientError)
        try:
            retries = {"mode": "standard", "max_attempts": 5}
            self._client = get_session().create_client("s3", config=Config(retries=retries))
            self._client.head_bucket(Bucket=bucket)
        except (*self._errors, ValueError) as error:
            raise ConfigError(
                "fleet-store",
                f"The store {place} cannot be used.",
                why=f"{error}",
                fix="Make the bucket, and check the keys, the region and the address in the surroundings (AWS_...).",
            ) from error

    def put(self, key: str, data: bytes) -> None:
        """Write an object; it is there whole or not at all."""
        self._do(lambda: self._client.put_object(Bucket=self._bucket, Key=self._prefix + key, Body=data))

    def get(self, key: str) -> bytes:
        """Read an object."""

        def read() -> bytes:
            data: bytes = self._client.get_object(Bucket=self._bucket, Key=self._prefix + key)["Body"].read()
            return data

        return self._do(read)

    def list(self, prefix: str) -> Sequence[str]:
        """Name the objects of a folder, by their keys without the store's own prefix."""

        def listed() -> list[str]:
            pages = self._client.get_paginator("list_objects_v2").paginate(
                Bucket=self._bucket, Prefix=self._prefix + prefix, PaginationConfig={"PageSize": _AN_ANSWER}
            )
            found: list[Any] = [one for page in pages for one in page.get("Contents", ())]
            return sorted(str(one["Key"]).removeprefix(self._prefix) for one in found)

        return self._do(listed)

    def delete(self, key: str) -> None:
        """Remove an object; one that is not there is no error."""
        self._do(lambda: self._client.delete_object(Bucket=self._bucket, Key=self._prefix + key))

    def _do(self, work: Callable[[], _T]) -> _T:
        try:
            return work()
        except self._errors as error:
            raise OSError(str(error)) from error

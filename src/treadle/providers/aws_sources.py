"""Credentials of AWS that must be fetched: roles, single sign-on, programs. `botocore` knows them all."""

import asyncio
from typing import Any

import botocore.exceptions
import botocore.session

from treadle.protocol.models import ErrorKind
from treadle.providers.aws_signature import AwsCredentials
from treadle.providers.endpoint import Endpoint
from treadle.providers.failures import failure
from treadle.providers.wire import CallFailedError


class FetchedCredentials:
    """Finds the credentials of a profile (empty: the default one) with the first call, and renews them in time."""

    def __init__(self, endpoint: Endpoint, profile: str) -> None:
        self._endpoint = endpoint
        self._profile = profile
        self._found: Any = None

    async def __call__(self) -> AwsCredentials:
        """Give those that count now; raises `CallFailedError`."""
        try:
            return await asyncio.to_thread(self._frozen)
        except (botocore.exceptions.BotoCoreError, botocore.exceptions.ClientError, OSError) as error:
            raise CallFailedError(failure(self._endpoint, ErrorKind.AUTHENTICATION, str(error))) from error

    def _frozen(self) -> AwsCredentials:
        if self._found is None:
            self._found = botocore.session.Session(profile=self._profile or None).get_credentials()
        if self._found is None:
            raise botocore.exceptions.NoCredentialsError
        frozen = self._found.get_frozen_credentials()
        return AwsCredentials(
            access_key=frozen.access_key, secret_key=frozen.secret_key, session_token=frozen.token or ""
        )

"""A token that a program of the user prints, such as `gcloud auth print-access-token`."""

import asyncio
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Sequence

from treadle.protocol.models import ErrorKind
from treadle.providers.endpoint import Endpoint
from treadle.providers.failures import failure
from treadle.providers.tokens import UNKNOWN_LIFETIME, BearerToken
from treadle.providers.wire import CallFailedError
from treadle.workspace.commands.installed_programs import kill_program

_SECONDS = 30.0


async def run_token_command(endpoint: Endpoint, command: Sequence[str]) -> BearerToken:
    """Run the program, without a shell; raises `CallFailedError` with what it said on its error output."""
    process = None
    try:
        async with asyncio.timeout(_SECONDS):
            process = await asyncio.create_subprocess_exec(*command, stdin=DEVNULL, stdout=PIPE, stderr=PIPE)
            out, err = await process.communicate()
    except (OSError, ValueError) as error:
        why = f"its token command {command[0]!r} did not run: {str(error) or 'it took too long'}"
        raise CallFailedError(failure(endpoint, ErrorKind.AUTHENTICATION, why)) from error
    finally:
        if process is not None and process.returncode is None:
            kill_program(process)
            await process.wait()
    token = out.decode("utf-8", "replace").strip()
    if process.returncode or not token or any(sign.isspace() for sign in token):
        said = err.decode("utf-8", "replace").strip()[:500] or "it printed no token"
        why = f"its token command {command[0]!r} failed: {said}"
        raise CallFailedError(failure(endpoint, ErrorKind.AUTHENTICATION, why))
    return BearerToken(value=token, lifetime=UNKNOWN_LIFETIME)

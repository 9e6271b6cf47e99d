"""Signatures against those of AWS's own library, and where the account comes from."""

from datetime import UTC, datetime
from urllib.parse import quote

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.providers.aws_signature import AwsCredentials, AwsSigner, signed_headers
from treadle.providers.wire import HttpCall

MOMENT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
MODELS = st.text("abz09.:-/~ _+%é", max_size=30).map("m".__add__)


class FixedTime(SigV4Auth):  # type: ignore[misc]
    """The signature of AWS's library at one moment."""

    def add_auth(self, request: AWSRequest) -> None:
        request.context["timestamp"] = MOMENT.strftime("%Y%m%dT%H%M%SZ")
        self._modify_request_before_signing(request)
        text = self.string_to_sign(request, self.canonical_request(request))
        self._inject_signature_to_request(request, self.signature(text, request))


@settings(max_examples=60)
@given(model=MODELS, body=st.binary(max_size=60), token=st.sampled_from(["", "TOKEN=="]))
def test_a_signature_is_that_of_the_library_of_aws(model: str, body: bytes, token: str) -> None:
    url = f"https://bedrock-runtime.eu-west-1.amazonaws.com/model/{quote(model, safe='')}/converse-stream"
    theirs = AWSRequest(method="POST", url=url, data=body, headers={"Content-Type": "application/json"})
    FixedTime(Credentials("AKID", "SECRET", token or None), "bedrock", "eu-west-1").add_auth(theirs)
    ours = signed_headers(
        HttpCall(url=url, headers={}, body=body),
        AwsCredentials(access_key="AKID", secret_key="SECRET", session_token=token),
        region="eu-west-1",
        service="bedrock",
        moment=MOMENT,
    )
    assert ours["authorization"] == theirs.headers["Authorization"]
    assert ours["x-amz-date"] == theirs.headers["X-Amz-Date"]
    assert ours.get("x-amz-security-token", "") == token


async def test_the_secrets_of_a_signer_are_those_of_the_last_call() -> None:
    async def found() -> AwsCredentials:
        return AwsCredentials(access_key="AKID", secret_key="SECRET", session_token="TOKEN")

    signer = AwsSigner(found, region="r", service="bedrock", now=lambda: MOMENT)
    assert not signer.secrets
    await signer.headers(HttpCall(url="http://127.0.0.1:8080/x", headers={}, body=b""))
    assert signer.secrets == ("SECRET", "TOKEN")
    assert "SECRET" not in repr(await found())

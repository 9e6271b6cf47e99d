"""The store of workers in a bucket, against a server that speaks S3: moto's, over HTTP."""

from collections.abc import Iterator

import pytest
from botocore.session import get_session

from tests.needed import needs
from treadle.headless.fleet import s3_store
from treadle.headless.fleet.artifact_store import artifact_store
from treadle.headless.fleet.s3_store import BucketStore
from treadle.protocol.errors import ConfigError

pytestmark = needs("moto")


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A bucket of a server on loopback."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    for name, value in (
        ("AWS_ACCESS_KEY_ID", "key"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
        ("AWS_DEFAULT_REGION", "us-east-1"),
        ("AWS_ENDPOINT_URL_S3", f"http://{host}:{port}"),
        ("AWS_EC2_METADATA_DISABLED", "true"),
    ):
        monkeypatch.setenv(name, value)
    client = get_session().create_client("s3")
    client.create_bucket(Bucket="tasks")
    yield "tasks"
    client.close()
    server.stop()


def test_a_bucket_keeps_whole_objects_in_order_below_its_prefix_and_forgets_them(bucket: str) -> None:
    store = artifact_store(f"s3://{bucket}/some/where/")
    assert isinstance(store, BucketStore)
    for key in ("r/a/2", "r/a/1", "r/b/1", "r/ab/1"):
        store.put(key, key.encode())
    store.put("r/a/1", b"new")
    assert (store.list("r/a/"), store.get("r/a/1")) == (["r/a/1", "r/a/2"], b"new")
    whole = artifact_store(f"s3://{bucket}")
    assert whole is not None
    assert whole.list("some/where/r/b") == ["some/where/r/b/1"]
    with pytest.raises(OSError, match="NoSuchKey"):
        store.get("r/a/9")
    for key in (*store.list("r/a/"), "r/a/9"):
        store.delete(key)
    assert (store.list("r/a/"), store.list("r/b/"), store.list("r/")) == ([], ["r/b/1"], ["r/ab/1", "r/b/1"])


def test_more_objects_than_one_answer_has_are_listed_in_order(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(s3_store, "_AN_ANSWER", 3)
    store = artifact_store(f"s3://{bucket}")
    assert store is not None
    keys = [f"r/a/{number:06}" for number in range(10)]
    for key in keys:
        store.put(key, b"")
    assert store.list("r/a/") == keys


def test_a_bucket_that_is_not_there_is_said_before_any_work(bucket: str) -> None:
    with pytest.raises(ConfigError) as refused:
        artifact_store("s3://another")
    assert (refused.value.code, "404" in refused.value.why) == ("fleet-store", True)
    with pytest.raises(ConfigError):
        artifact_store("s3://")

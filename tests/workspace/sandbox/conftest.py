"""The tests of sandboxes leave no namespaces behind."""

from collections.abc import Iterator

import pytest
from tests.workspace.sandbox.running import close_namespaces


@pytest.fixture(autouse=True)
def closed_namespaces(no_orphans: None) -> Iterator[None]:
    """End what the commands of a test shared before it is looked for what it left."""
    yield
    close_namespaces()

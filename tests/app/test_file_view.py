"""The policy's look at the disk answers for every path, also for what may not be looked at."""

import os
from pathlib import Path

import pytest

from treadle.app.security.file_view import DiskView


def test_a_link_that_may_not_be_read_leads_to_itself(tmp_path: Path) -> None:
    for path in ("/proc/1/fd/0", "/proc/1/fd/3", "/proc/1/root/x", "/proc/1/cwd/../x"):
        assert DiskView().resolve(path).startswith("/")
    assert DiskView().resolve(f"{tmp_path}/a/../b") == f"{os.path.realpath(tmp_path)}/b"


@pytest.mark.parametrize("path", ["/proc/1/environ/x", "/nowhere/x"])
def test_what_cannot_be_looked_at_is_nothing(path: str) -> None:
    view = DiskView()
    assert (view.facts(path), view.names(path), view.read_config(path)) == (None, (), None)


@pytest.mark.parametrize("path", ["\0", "/" + "x" * 300])
def test_what_a_path_that_no_call_takes_leads_to_is_unknown(path: str) -> None:
    view = DiskView()
    assert (view.facts(path), view.names(path), view.read_config(path)) == (None, None, None)

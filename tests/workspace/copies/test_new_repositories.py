"""A trial in which a folder becomes a repository that runs something is asked about; one that runs nothing is not."""

import os

import pytest
from tests.workspace.copies.copied import Bench

from treadle.workspace.copies.new_repositories import RUNS_LATER

_FAKE = """mkdir -p {0}/objects {0}/refs; echo 'ref: refs/heads/main' > {0}/HEAD
printf '[core]\\n\\trepositoryformatversion = 0\\n{1}' > {0}/config"""
_HELD = {
    "a monitor": (_FAKE.format("sub", "\\tfsmonitor = ./x\\n"), {"sub/HEAD", "sub/config"}),
    "where git ignores it": (_FAKE.format("build/sub", "\\tworktree = .\\n"), {"build/sub/HEAD", "build/sub/config"}),
    "a hook": (f"{_FAKE.format('s', '')}; mkdir s/hooks; touch s/hooks/update", {"s/HEAD", "s/hooks/update"}),
    "settings elsewhere": ("mkdir s; echo x > s/HEAD; echo ../x > s/commondir", {"s/HEAD", "s/commondir"}),
    "the last part of one": ("echo 'ref: refs/heads/main' > parts/HEAD", {"parts/HEAD"}),
    "a setting of one from before": ("git -C bare config core.fsmonitor ./x", {"bare/config"}),
    "a hook of one from before": ("touch bare/hooks/update", {"bare/hooks/update"}),
    "a link of one from before": ("rm -r bare/hooks; ln -s ../x bare/hooks", {"bare/hooks"}),
}
_FREE = {
    "made by git": "git init -q --bare new",
    "cloned": "git clone -q --bare bare new",
    "a setting that runs nothing": "git -C bare config remote.origin.url x",
    "a folder of such names": "mkdir -p src/refs src/objects; touch src/config src/refs/x",
    "what is removed": "rm -r bare",
}


@pytest.fixture
def bench_with(bench: Bench) -> Bench:
    line = (
        f"git init -q; echo build/ > .gitignore; git init -q --bare bare; {_FAKE.format('parts', 'x')}; rm parts/HEAD"
    )
    assert os.system(f"cd '{bench.root}' && {{ {line}; }}") == 0
    return bench


async def _held(bench: Bench, line: str) -> set[str]:
    ran = await bench.run(line)
    assert ran.status == 0, ran.output
    changes = ran.changes()
    return {os.path.relpath(one.path, bench.root) for one in changes.changes if one.held == RUNS_LATER}


@pytest.mark.parametrize("name", _HELD)
async def test_what_makes_a_folder_a_repository_that_runs_something_is_held(bench_with: Bench, name: str) -> None:
    line, held = _HELD[name]
    assert await _held(bench_with, line) == held


@pytest.mark.parametrize("name", _FREE)
async def test_what_makes_git_run_nothing_is_not_held(bench_with: Bench, name: str) -> None:
    assert await _held(bench_with, _FREE[name]) == set()

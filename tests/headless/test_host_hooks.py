"""The hooks that a host names when it begins: one in a wrong form blocks what it would judge."""

from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from treadle.app.hooks.hook_rows import HookFailedError
from treadle.headless.host_hooks import host_hooks
from treadle.headless.hosting import HostedSession


@dataclass
class Began:
    hooks: dict[str, Any]


@dataclass
class FakeHost:
    began: Began
    warnings: list[str] = field(default_factory=list)

    def warn(self, text: str) -> None:
        self.warnings.append(text)


@pytest.mark.parametrize(
    ("matchers", "matcher"),
    [
        (5, ""),
        ({"matcher": "Bash", "hookCallbackIds": ["h1"]}, "Bash"),
        (["x"], ""),
        ([{"matcher": {}, "hookCallbackIds": ["h1"]}], ""),
        ([{"matcher": "Bash", "hookCallbackIds": "h1"}], "Bash"),
        ([{"matcher": "Bash"}], "Bash"),
    ],
)
async def test_a_wrong_matcher_of_a_host_blocks_what_it_would_judge(matchers: Any, matcher: str) -> None:
    host = FakeHost(Began({"PreToolUse": matchers}))
    (row,) = host_hooks(cast("HostedSession", host))
    assert (row.event, row.matcher, row.blocks) == ("PreToolUse", matcher, True)
    if "h1" in row.name:
        return  # a single group is as good as a list of one
    with pytest.raises(HookFailedError):
        await row.handler({})
    assert host.warnings == ["A hook of the event PreToolUse cannot be called: it is not as the SDK writes it."]

"""Programs that type into another program of the person, or run something in it: they ask where nothing holds them."""

import pytest

from tests.policy.views import ROOT, context
from treadle.policy.decide import decide
from treadle.protocol.permissions import Decision, Mode, Verdict
from treadle.protocol.tools import RunCommand
from treadle.tools.declarations import EXECUTE_COMMAND

TYPES = (
    *(
        "tmux send-keys -t 0 ls Enter",
        "tmux send -t 0 ls",
        "tmux run-shell ls",
        "tmux if-shell a b",
        "tmux pipe-pane ls",
    ),
    *(
        "tmux paste-buffer",
        "tmux respawn-pane -k ls",
        "tmux source-file x",
        "screen -X stuff ls",
        "screen -S s -X exec ls",
    ),
    *("kitty @ send-text ls", "kitten @ launch ls", "wezterm cli send-text ls", "wezterm cli spawn ls"),
    *("alacritty msg create-window", "zellij action write-chars ls", "zellij run -- ls", "xdotool type ls"),
    *("ydotool type ls", "wtype ls", "dotool", "swaymsg exec ls", "i3-msg exec ls", "hyprctl dispatch exec ls"),
    *("gdbus call x", "qdbus org.kde.konsole /x sendText ls", "qdbus6 x"),
    *("emacsclient -e x", "emacsclient --eval x", "vim --remote-send x", "gvim --remote-expr x"),
    *("nvim --server /tmp/s --remote-send x", "nvim --server=/tmp/s --remote-expr=x", "nvim --remote a.txt"),
)
LEAVES_ALONE = (
    *("tmux ls", "tmux new -d -s x 'npm start'", "tmux attach -t x", "screen -ls", "kitty @ ls", "wezterm cli list"),
    *("zellij list-sessions", "emacsclient a.txt", "emacsclient -c a.txt", "nvim --headless +q", "kitty npm run dev"),
)


def decided(line: str, mode: Mode, *, confines: bool) -> Decision:
    access = RunCommand(command=line, cwd=ROOT)
    return decide(EXECUTE_COMMAND, {}, (access,), context(mode, confines=confines, brokers=confines))


@pytest.mark.parametrize("line", TYPES)
def test_what_types_into_another_program_asks_where_nothing_holds_it(line: str) -> None:
    for form in ("{}", "sh -c '{}'", "true && {}", "timeout 5 {}", "/usr/bin/{}"):
        found = decided(form.format(line), Mode.FULL, confines=False)
        assert found.verdict is Verdict.REQUIRE_USER_CONFIRMATION, form
        assert found.dangerous
    assert decided(line, Mode.AUTO, confines=True).verdict is Verdict.ALLOW
    assert decided(f"{line}; docker ps", Mode.AUTO, confines=True).risk.value == "critical"


@pytest.mark.parametrize("line", LEAVES_ALONE)
def test_what_only_begins_or_lists_one_runs(line: str) -> None:
    assert decided(line, Mode.FULL, confines=False).verdict is Verdict.ALLOW


@pytest.mark.parametrize(
    "line", ["fossil sync", "fossil commit -m x", "fossil push", "svn commit -m x", "svn import a b"]
)
def test_what_sends_commits_to_others_asks_in_every_mode(line: str) -> None:
    for mode in Mode:
        assert decided(line, mode, confines=mode is not Mode.FULL).verdict is not Verdict.ALLOW

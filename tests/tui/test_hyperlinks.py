"""Addresses and paths in the scrollback are links where the terminal takes them, and lead to what is read."""

import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.app.config.sections import Settings
from treadle.present.items import NoteItem, ProseItem
from treadle.tui.paint.hyperlinks import FileLinks, linkable_names, linked, supports_links, visible_width
from treadle.tui.paint.look import look_of
from treadle.tui.paint.painter import Painter
from treadle.tui.paint.printed_items import PrintedItem
from treadle.tui.paint.theme import Palette, Theme

LINK = re.compile(r"\x1b\]8;;([^\x1b]+)\x1b\\(.*?)\x1b\]8;;\x1b\\", re.DOTALL)
MARK = re.compile(r"\x1b\]8;;[^\x1b]*\x1b\\")
SGR = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "a shop"
    (root / "shop").mkdir(parents=True)
    for name in ("shop/cart.py", "README.md", "run.sh", "page.html", "x.desktop", "shop/ü.txt"):
        (root / name).write_text("x")
    (root / "run.sh").chmod(0o755)
    (tmp_path / "secret.txt").write_text("x")
    (root / "out").symlink_to(tmp_path / "secret.txt")
    (root / "loop.py").symlink_to(root / "loop.py")
    os.mkfifo(root / "pipe.txt")
    return root


def known(root: Path, text: str) -> FileLinks:
    """What is known of a folder once it was looked up where the names of a text lead."""
    found = FileLinks(str(root))
    found.know(found.look_up(linkable_names(SGR.sub("", text))))
    return found


def links(row: str, root: Path, *, full: bool = False) -> list[tuple[str, str]]:
    """Where each link of a row leads, and what of it is read."""
    return [(target, SGR.sub("", text)) for target, text in LINK.findall(linked(row, known(root, row), full=full))]


def at(file: Path) -> str:
    """The address of a file, on this machine."""
    return f"file://{os.uname().nodename}{str(file).replace(' ', '%20').replace('ü', '%C3%BC')}"


@pytest.mark.parametrize(
    ("row", "found"),
    [
        ("see https://a.example/x?y=1#z.", ["https://a.example/x?y=1#z"]),
        ("(https://a.example/x_(y)) http://b.example,", ["https://a.example/x_(y)", "http://b.example"]),
        ("javascript://x file:///etc/passwd ftp://a", []),
        ("https://bank.example@evil.example/", []),
        ("https://a.example/cut… https://a.example/cut...", []),
        ("https:// http://[bad xhttps://a.example", []),
        ("https://a.exämple/", []),
    ],
)
def test_an_address_leads_to_what_is_read(project: Path, row: str, found: list[str]) -> None:
    assert links(row, project) == [(one, one) for one in found]


def test_a_path_of_a_file_below_the_folder_is_a_link(project: Path) -> None:
    row = f"✓ Read \x1b[1mshop/cart.py\x1b[0m, README.md:3 ./shop {project.name} shop/ü.txt {project}/README.md"
    assert links(row.replace(str(project), "/nowhere"), project) == [
        (at(project / "shop/cart.py"), "shop/cart.py"),
        (at(project / "README.md"), "README.md"),
        (at(project / "shop"), "./shop"),
        (at(project / "shop/ü.txt"), "shop/ü.txt"),
    ]


@pytest.mark.parametrize(
    "row",
    [
        "../secret.txt out/ ./out /etc/passwd",
        "run.sh page.html x.desktop loop.py pipe.txt",
        "shop none.py shop/cart.pyx shop/cart.py… shop/cart.py... ~/README.md a/README.mdé",
        "\x1b]8;;https://x\x07shop/cart.py\x1b]8;;\x07",
        "…/shop/cart.py",
    ],
)
def test_what_leads_elsewhere_or_runs_when_it_is_opened_is_none(project: Path, row: str) -> None:
    assert linked(row, known(project, row), full=False) == row


def test_what_may_go_on_in_the_next_row_is_none(project: Path) -> None:
    assert links("go to https://a.example/x", project, full=True) == []
    assert len(links("https://a.example/x and", project, full=True)) == 1


@given(st.text(alphabet=st.sampled_from("ab/.:@ ()…\x1b[31m;https日é"), max_size=60), st.booleans())
def test_nothing_else_of_a_row_changes(text: str, full: bool) -> None:
    row = f"\x1b[1m{text}\x1b[0m https://a.example/{text}"
    assert MARK.sub("", linked(row, known(Path("/"), row), full=full)) == row


@pytest.mark.parametrize("width", [24, 30, 80])
def test_a_painted_link_is_whole_or_none(project: Path, width: int) -> None:
    address = "https://a.example/a/long/path/to/a/page.html?with=a&query=too"
    theme = Theme(palette=Palette.DARK)
    items: list[PrintedItem] = [
        ProseItem(f"Go to {address} now, or to shop/cart.py:3.\n\n- {address}\n\n> {address}\n"),
        ProseItem(f"| a | b |\n|---|---|\n| {address} | {address} |\n"),
        ProseItem(f"[a text]({address})\n"),
        NoteItem(f"See {address}"),
    ]
    found = FileLinks(str(project))
    assert at(project / "shop/cart.py") not in Painter(width, theme, links=found).items(items)
    found.know(found.look_up(found.asked_for()))
    painted = Painter(width, theme, links=found).items(items)
    plain = Painter(width, theme).items(items)
    assert MARK.sub("", painted) == plain
    assert "\x1b]8" not in plain
    assert {target for target, _ in LINK.findall(painted)} <= {address, at(project / "shop/cart.py")}
    assert all(visible_width(MARK.sub("", row)) <= width - 1 for row in painted.split("\n"))
    if width == 80:
        assert painted.count(f";{address}\x1b") == 5, painted


def test_only_a_terminal_that_is_known_to_take_links_gets_them(monkeypatch: pytest.MonkeyPatch) -> None:
    known = [
        {"TERM": "xterm-256color", "TERM_PROGRAM": "WezTerm"},
        {"TERM": "xterm-kitty"},
        {"TERM": "xterm-256color", "VTE_VERSION": "7006"},
        {"TERM": "tmux-256color", "TERM_PROGRAM": "tmux", "TERM_PROGRAM_VERSION": "3.4", "TMUX": "x"},
    ]
    unknown = [
        {"TERM": "xterm-256color"},
        {"TERM": "dumb", "TERM_PROGRAM": "vscode"},
        {"TERM": "xterm", "VTE_VERSION": "4200"},
        {"TERM": "screen", "STY": "1", "TERM_PROGRAM": "WezTerm"},
        {"TERM": "tmux", "TERM_PROGRAM": "tmux", "TERM_PROGRAM_VERSION": "3.3a", "TMUX": "x"},
        {},
    ]
    assert [supports_links(one) for one in (*known, *unknown)] == [True] * len(known) + [False] * len(unknown)
    monkeypatch.setenv("TERM", "xterm-kitty")
    monkeypatch.delenv("TMUX", raising=False)
    monkeypatch.delenv("STY", raising=False)
    assert look_of(Settings()).links
    assert not look_of(Settings(links=False)).links

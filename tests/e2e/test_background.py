"""The terminal is asked for its background; whatever it answers, and when, no byte of that is taken for typing."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import MappingProxyType

import pytest

from tests.e2e.process import Program
from tests.e2e.pseudo_terminal import Terminal, on_terminal
from tests.e2e.running import model
from treadle.providers.scripted.script import SayText, Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer
from treadle.tui.paint.colour_replies import ASK

DARK, LIGHT = "\x1b]11;rgb:1e1e/1e1e/1e1e\x07", "\x1b]11;rgb:fdfd/f6f6/e3e3\x1b\\"
ACCENTS = {"dark": "5fc9c0", "light": "00736b", "ansi": "cyan"}
MARK, NAME = "▞▚", "Treadle"
GREETING = f"{MARK} {NAME}"

PATIENT = (
    sys.executable,
    "-c",
    "from treadle.tui.paint import look; look.ANSWER_SECONDS = 20.0; from treadle.__main__ import main; main()",
)
"""The program, for terminals that answer in time however busy this machine is."""

NO_EXTRA: Mapping[str, str] = MappingProxyType({})
Answer = Callable[[Terminal], object]


@asynccontextmanager
async def asked(
    folder: Path, answer: Answer, *, patient: bool = False, settings: str = "", extra: Mapping[str, str] = NO_EXTRA
) -> AsyncIterator[tuple[Terminal, bytearray]]:
    """Start on a terminal that does `answer` when it is asked; gives also all that was written to it."""
    home, workspace = folder / "home", folder / "project"
    home.mkdir()
    workspace.mkdir()
    (home / "config.toml").write_text(settings)
    program = Program(home, {"COLORTERM": "truecolor", "COLORFGBG": "", **extra})
    turns = (Turn(items=(SayText(text="First."),)),)
    async with ScriptedServer(Script(turns=turns)) as server:
        words = (*model(server), "--directory", str(workspace))
        async with on_terminal(program, *words, command=PATIENT if patient else ()) as terminal:
            written = bytearray()

            def hears(data: bytes) -> None:
                written.extend(data)
                if ASK.encode() in written and not answered:
                    answered.append(True)
                    answer(terminal)

            answered: list[bool] = []
            terminal.hears = hears
            yield terminal, written


def accent(terminal: Terminal) -> set[str]:
    return terminal.colours_of(MARK, NAME)


def later(seconds: float, *pieces: str) -> Answer:
    """Answer after a while, piece by piece."""

    def answer(terminal: Terminal) -> None:
        loop = asyncio.get_running_loop()
        for number, piece in enumerate(pieces, start=1):
            loop.call_later(seconds * number, terminal.type, piece)

    return answer


@pytest.mark.parametrize(("reply", "palette"), [(DARK, "dark"), (LIGHT, "light")])
async def test_the_answer_decides_between_dark_and_light(tmp_path: Path, reply: str, palette: str) -> None:
    async with asked(tmp_path, lambda terminal: terminal.type(reply), patient=True) as (terminal, _):
        await terminal.until_shown(GREETING, "? for keys")
        assert accent(terminal) == {ACCENTS[palette]}
        terminal.type("hello")
        await terminal.until_shown("› hello")


async def test_an_answer_in_two_reads_is_one_and_keys_around_it_are_kept(tmp_path: Path) -> None:
    answer = later(0.05, "ab", DARK[:14], f"{DARK[14:]}cd")
    async with asked(tmp_path, answer, patient=True) as (terminal, _):
        await terminal.until_shown(GREETING, "› abcd")
        assert accent(terminal) == {ACCENTS["dark"]}
        assert "rgb" not in terminal.shown


@pytest.mark.parametrize(
    ("answer", "seconds"),
    [
        pytest.param(later(0.2, DARK), 0.2, id="late", marks=pytest.mark.soak),
        pytest.param(later(0.2, LIGHT[:9], LIGHT[9:]), 0.4, id="late in two reads"),
        pytest.param(later(2.0, DARK), 2.0, id="in the session", marks=pytest.mark.soak),
        pytest.param(later(2.0, DARK[:7], DARK[7:]), 4.0, id="in the session in two reads"),
        pytest.param(later(0.6, "\x1b", DARK[1:]), 1.2, id="escape first"),
        pytest.param(
            lambda terminal: (terminal.type(DARK[:10]), later(0.4, DARK[10:])(terminal)), 0.4, id="half in time"
        ),
    ],
)
async def test_a_late_answer_puts_nothing_into_the_draft(tmp_path: Path, answer: Answer, seconds: float) -> None:
    done = asyncio.Event()

    def answers(terminal: Terminal) -> None:
        answer(terminal)
        asyncio.get_running_loop().call_later(seconds + 0.5, done.set)

    async with asked(tmp_path, answers) as (terminal, written):
        await terminal.until_shown(GREETING, "? for keys")
        await done.wait()
        terminal.type("hello")
        await terminal.until_shown("› hello")
        assert "rgb" not in terminal.shown
        assert b"rgb" not in written, "the terminal showed its own answer"


async def test_a_terminal_that_never_answers_is_asked_once_and_goes_by_colorfgbg(tmp_path: Path) -> None:
    async with asked(tmp_path, lambda _: None, extra={"COLORFGBG": "0;15"}) as (terminal, written):
        await terminal.until_shown(GREETING, "? for keys")
        assert accent(terminal) == {ACCENTS["light"]}
        assert written.count(ASK.encode()) == 1


async def test_keys_typed_while_the_terminal_is_asked_are_in_the_draft_once(tmp_path: Path) -> None:
    async with asked(tmp_path, lambda terminal: terminal.type("early ä")) as (terminal, _):
        await terminal.until_shown(GREETING, "› early ä", "? for keys")
        assert accent(terminal) == {ACCENTS["ansi"]}
        assert terminal.shown.count("early") == 1


@pytest.mark.parametrize(
    ("settings", "extra"),
    [
        ("", {"NO_COLOR": "1"}),
        ("", {"TERM": "dumb"}),
        ('theme = "light"', {}),
        ("", {"TERM": "xterm", "COLORTERM": ""}),
    ],
    ids=["no colour", "dumb", "setting", "sixteen colours"],
)
async def test_who_needs_no_answer_is_not_asked(tmp_path: Path, settings: str, extra: dict[str, str]) -> None:
    async with asked(tmp_path, lambda _: None, settings=settings, extra=extra) as (terminal, written):
        await terminal.until_shown(GREETING, "Describe a task")
        assert ASK.encode() not in written
        if settings:
            assert accent(terminal) == {ACCENTS["light"]}


async def test_nothing_moves_where_animation_is_off(tmp_path: Path) -> None:
    async with asked(tmp_path, lambda _: None, settings="animation = false") as (terminal, _):
        await terminal.until_shown(GREETING, "? for keys")
        terminal.type("hello\r")
        await terminal.until_shown("First.", "■ Done")
        assert not set("⠋⠙⠹⠸⢰⣠⣄⡆") & set(terminal.shown)

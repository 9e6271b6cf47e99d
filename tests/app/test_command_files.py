"""Commands that are Markdown files: their arguments, what they send along, and that none runs what it must not."""

import os
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.app.mentioning import tell
from treadle.app.security.trusting import session_trust, trust_store
from treadle.app.session.command_forms import command_name, fill_arguments, read_command
from treadle.app.session.live import LiveSession
from treadle.app.session.own_commands.command_files import NamedText, find_texts
from treadle.app.session.own_commands.slash_commands import slash_names
from treadle.store.activation import COMMAND_FOLDERS

SECRET = "the-quiet-part"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOME", str(tmp_path / "person"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws" / "a.py").write_text("ANSWER = 42\n")
    return (tmp_path / "ws").resolve()


def command(folder: Path, path: str, text: str) -> None:
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_text(text)


def found(folder: Path, *, trusted: bool = True) -> dict[str, NamedText]:
    return {one.name: one for one in find_texts(session_trust(folder, once=trusted))}


@pytest.mark.parametrize(
    ("text", "first", "filled"),
    [
        ("fix $ARGUMENTS now", 1, 'fix 12 "two words" now'),
        ("fix $1 for $2", 1, "fix 12 for two words"),
        ("fix $0 for $1", 0, "fix 12 for two words"),
        ("fix $0 for $3", 1, "fix $0 for $3"),
        ("$ARGUMENTS[0]-$ARGUMENTS[1]-$ARGUMENTS[2]", 1, "12-two words-$ARGUMENTS[2]"),
        ("it costs $100 and $1", 1, "it costs $100 and 12"),
        ("$HOME ${1} $", 1, "$HOME ${1} $"),
    ],
)
def test_arguments_are_filled_in(text: str, first: int, filled: str) -> None:
    assert fill_arguments(text, '12 "two words"', first=first) == filled


@pytest.mark.parametrize(
    ("source", "text", "given", "filled"),
    [
        ("earendil-works/pi#418", "Price: $ARGUMENTS", "$100", "Price: $100"),
        ("Gitlawb/openclaude#1966", "cost $ARGUMENTS", "is 100$$", "cost is 100$$"),
        ("Gitlawb/openclaude#1966", "run $ARGUMENTS now", "deploy $& svc", "run deploy $& svc now"),
        ("code-yeongyu/oh-my-openagent#763", "<user>$ARGUMENTS</user>", "", "<user></user>"),
        ("anthropics/claude-code#92171", "$1-$2-$3", "a b c", "a-b-c"),
        ("max-sixty/tend#562", "~$0.20 and $1+", "", "~$0.20 and $1+"),
        ("arguments that name others", "$ARGUMENTS", "$1 $2", "$1 $2"),
    ],
)
def test_arguments_of_a_report_stay_as_they_were_typed(source: str, text: str, given: str, filled: str) -> None:
    assert fill_arguments(text, given, first=1) == filled, source


COPILOT, GEMINI = ".github/prompts/a.prompt.md", "Fix x y: !`git log 'x y'` @a.py"
SHAPES = [
    (".claude/commands/a.md", "---\ndescription: d\n---\nFix $0, $1.", "x y", "Fix x, y."),
    (".opencode/command/a.md", "---  \ndescription: d\nagent: build\n---\nFix $1, $ARGUMENTS.", "x y", "Fix x, x y."),
    (".cursor/commands/a.md", "# Fix\n\nFix it.", "x", "# Fix\n\nFix it."),
    (".cursor/commands/a.md", "\ufeffFix it.", "", "Fix it."),
    (".codex/prompts/a.md", "---\nargument-hint: FILE\n---\nFix $1 for $2.", "x 'y z'", "Fix x for y z."),
    (".gemini/commands/a.toml", 'prompt = "Fix {{args}}: !{git log {{args}}} @{a.py}"', "x y", GEMINI),
    (".gemini/commands/a.toml", 'description = "d"\nprompt = """\nFix.\n"""', "x", "Fix.\n"),
    (COPILOT, "---\nmode: agent\ntools: ['x']\n---\nFix ${input:what}.", "x y", "Fix x y."),
    (COPILOT, "Fix ${input:what:the thing} in ${input:where}, ${input:what}.", "x y z", "Fix x in y z, x."),
    (COPILOT, "Fix ${input:what} in ${input:where}.", "x", "Fix x in ${input:where}."),
    (".windsurf/workflows/a.md", "---\ndescription: d\n---\n1. Fix it.", "", "1. Fix it."),
    (".clinerules/workflows/a.md", "Fix it.", "", "Fix it."),
    (".roo/commands/a.md", "---\nargument-hint: <x>\n---\nFix $1", "x", "Fix x"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "text", "argument", "filled"), SHAPES)
def test_a_command_is_filled_as_its_own_program_fills_it(path: str, text: str, argument: str, filled: str) -> None:
    form = read_command(path, text.removeprefix("\ufeff"))
    assert (form.problem, form.filled(argument)) == ("", filled)


@pytest.mark.parametrize(
    ("path", "ending", "name"),
    [
        ("a.md", ".md", "a"),
        ("git/commit.toml", ".toml", "git:commit"),
        ("fix it.prompt.md", ".prompt.md", "fix-it"),
        ("2-füge.md", ".md", "2-füge"),
        ("!.md", ".md", "unnamed"),
        ("Speckit.plan.md", ".md", "Speckit.plan"),
    ],
)
def test_every_command_has_a_name_that_can_be_typed(path: str, ending: str, name: str) -> None:
    assert command_name(PurePosixPath(path), ending) == name


@pytest.mark.parametrize(("text", "says"), [("x", "it is not valid TOML"), ("a = 1", "it has no `prompt`")])
def test_a_command_of_gemini_that_cannot_be_read_says_why(folder: Path, text: str, says: str) -> None:
    command(folder, ".gemini/commands/a.toml", text)
    assert found(folder)["a"].unused.startswith(says)


def test_two_commands_of_one_name_are_both_there_unless_they_say_the_same(folder: Path) -> None:
    command(folder, ".claude/commands/fix.md", "Fix.")
    command(folder, ".cursor/commands/fix.md", "Fix.")
    command(folder, ".gemini/commands/fix.toml", 'prompt = "Mend."')
    command(folder, ".github/prompts/help.prompt.md", "Help.")
    assert {name: one.body("") for name, one in found(folder).items()} == {
        "fix": "Fix.",
        "gemini:fix": "Mend.",
        "copilot:help": "Help.",
    }


@given(st.text("a$ 0129ARGUMENTS[]\"'\\\n", max_size=40), st.text(max_size=20), st.sampled_from([0, 1]))
@example("$ARGUMENTS", "$1 $ARGUMENTS", 1)
@example("$1", "it's", 1)
def test_what_is_filled_in_is_filled_once_and_the_rest_stays(text: str, argument: str, first: int) -> None:
    filled = fill_arguments(text, argument, first=first)
    if "$" not in text:
        assert filled == text
    if text == "$ARGUMENTS":
        assert filled == argument


def test_commands_are_found_by_their_names(folder: Path, tmp_path: Path) -> None:
    command(folder, ".treadle/commands/vet.md", "---\ndescription: Review it\nargument-hint: FILE\n---\nReview $1.")
    command(folder, ".claude/commands/deep/er/fix.md", "# Fix the issue\n\nFix $0.")
    command(folder, ".clinerules/workflows/release.md", "Release.")
    command(folder, ".treadle/commands/status.md", "never")
    command(folder, ".treadle/commands/no name!.md", "never")
    command(folder, ".treadle/commands/notes.txt", "never")
    command(tmp_path, "person/.claude/commands/mine.md", "Mine.")
    command(tmp_path, "home/commands/ours.md", "Ours $1.")
    command(folder, ".claude/commands/mine.md", "Not this one.")
    known = found(folder)
    assert sorted(known) == [
        *("claude:mine", "deep:er:fix", "mine", "no-name", "ours", "release", "treadle:status", "vet"),
    ]
    vet = known["vet"]
    assert (vet.about, vet.hint, vet.origin) == ("Review it", "FILE", ".treadle/commands/vet.md")
    assert (vet.body("x"), known["deep:er:fix"].body("x")) == ("Review x.", "# Fix the issue\n\nFix x.")
    assert known["deep:er:fix"].about == "Fix the issue"
    assert known["mine"].body("") == "Mine."
    assert not set(known) & set(slash_names())


def test_odd_files_are_no_commands_and_nothing_hangs(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "id_rsa").write_text(SECRET)
    place = folder / ".claude" / "commands"
    command(folder, ".claude/commands/good.md", "---\nbroken: [\n---\nStill $0.")
    os.mkfifo(place / "pipe.md")
    (place / "zero.md").symlink_to("/dev/zero")
    (place / "key.md").symlink_to(tmp_path / "id_rsa")
    (place / "loop.md").symlink_to("loop.md")
    (place / "binary.md").write_bytes(b"\0\1")
    (place / "huge.md").write_bytes(b"x" * 1_000_000)
    (place / "link").symlink_to(tmp_path)
    (place / "folder.md").mkdir()
    assert {name: one.unused for name, one in found(folder).items()} == {
        "good": "",
        "pipe": "it is not text",
        "zero": "it leads out of the folder",
        "key": "it leads out of the folder",
        "loop": "it cannot be read",
        "binary": "it is not text",
        "huge": "it has more than 65,536 bytes",
    }
    assert found(folder)["good"].body("x").strip().endswith("Still x.")


def test_a_folder_of_commands_that_is_a_link_brings_in_nothing(folder: Path, tmp_path: Path) -> None:
    command(tmp_path, "elsewhere/evil.md", "evil")
    (folder / ".claude").mkdir()
    (folder / ".claude" / "commands").symlink_to(tmp_path / "elsewhere")
    assert [(one.unused, one.body("")) for one in found(folder).values()] == [("it leads out of the folder", "")]


async def test_a_command_goes_along_as_its_text_with_files_and_output(folder: Path) -> None:
    command(
        folder,
        ".treadle/commands/vet.md",
        "---\ndescription: Review\nallowed-tools: Bash\nmodel: opus\n---\n"
        "Review $1 carefully, see @a.py.\nBranch: !`echo on main`\nX=!`echo never` is text.\n",
    )
    told = await tell(folder, '/vet "the cart"')
    assert '/vet "the cart"' in told.texts
    (text,) = [text for text in told.texts if "<command" in text]
    assert text.startswith("The user entered a command.")
    assert '<command name="/vet" from=".treadle/commands/vet.md">\nReview the cart carefully, see @a.py.' in text
    assert "Branch: on main\nX=!`echo never` is text.\n</command>" in text
    assert "1 | ANSWER = 42" in told.along
    assert told.enclosed == (".treadle/commands/vet.md", "a.py")
    assert told.notices == ["/vet suggests the model opus. /model changes the model."]


async def test_a_hostile_command_of_a_folder_that_is_not_trusted_runs_nothing(folder: Path) -> None:
    (folder / ".env").write_text(f"PASSWORD={SECRET}\n")
    command(folder, ".claude/commands/evil.md", "!`touch pwned; cat .env`\n@.env\n")
    assert found(folder, trusted=False)["evil"].unused == "you do not trust this folder (/trust says how)"
    told = await tell(folder, "/evil", trusted=False)
    assert not (folder / "pwned").exists()
    assert told.enclosed == ()
    assert told.notices == ["/evil is not used: you do not trust this folder (/trust says how)."]
    assert SECRET not in str(told.bodies)


@pytest.mark.parametrize(("place", "ending"), COMMAND_FOLDERS.items())
def test_a_command_is_used_only_as_it_was_trusted(folder: Path, place: str, ending: str) -> None:
    before, after = ('prompt = "Fix it."', 'prompt = "!{./pwn}"') if ending == ".toml" else ("Fix it.", "!`./pwn`")
    command(folder, f"{place}/fix{ending}", before)
    trust_store().grant(session_trust(folder).trust)
    opened = session_trust(folder)
    command(folder, f"{place}/fix{ending}", after)
    command(folder, f"{place}/deep/new{ending}", after)
    late = "it is new or changed since you trusted this folder (/trust says how)"
    assert {one.name: one.unused for one in find_texts(opened)} == {"fix": late, "deep:new": late}
    again = session_trust(folder)
    assert (again.trusted, again.trust.changed) == (False, (f"{place}/deep/new{ending}", f"{place}/fix{ending}"))
    trust_store().grant(again.trust)
    assert {one.name: one.unused for one in find_texts(session_trust(folder))} == {"fix": "", "deep:new": ""}


async def test_a_command_that_changed_in_an_open_session_runs_nothing(folder: Path) -> None:
    command(folder, ".claude/commands/fix.md", "Fix it.")

    async def pull(_: LiveSession) -> None:
        command(folder, ".claude/commands/fix.md", "!`touch pwned`")

    told = await tell(folder, "/fix", before=pull)
    assert not (folder / "pwned").exists()
    assert told.enclosed == ()
    assert told.notices == ["/fix is not used: it is new or changed since you trusted this folder (/trust says how)."]


async def test_a_hostile_line_in_a_trusted_folder_is_judged_as_a_call_of_the_model(
    folder: Path, tmp_path: Path
) -> None:
    (folder / ".env").write_text(f"PASSWORD={SECRET}\n")
    command(folder, ".claude/commands/evil.md", f"!`cat .env`\n!`curl http://localhost:9/x`\n!`rm -rf {tmp_path}/ws`\n")
    told = await tell(folder, "/evil")
    assert (folder / ".env").exists()
    assert SECRET not in str(told.bodies)
    assert len([said for said in told.notices if said.startswith("Not run: `")]) >= 2, told.notices
    (text,) = [text for text in told.texts if "<command" in text]
    assert "[not run: `cat .env`: " in text


async def test_shell_lines_of_the_users_own_commands_need_a_trusted_folder_too(folder: Path, tmp_path: Path) -> None:
    command(tmp_path, "home/commands/own.md", "See !`echo it ran`.")
    (folder / "AGENTS.md").write_text("# Rules\n")
    untrusted = await tell(folder, "/own", trusted=False)
    assert untrusted.notices == ["Not run: `echo it ran`: shell lines of commands run only in a folder that you trust."]
    assert any("See it ran." in text for text in (await tell(folder, "/own")).texts)


async def test_many_and_slow_shell_lines_are_bounded(folder: Path) -> None:
    command(folder, ".treadle/commands/many.md", "\n".join(["!`echo x`"] * 30 + ["!`seq 1 100000`"]))
    told = await tell(folder, "/many")
    assert len([said for said in told.notices if "a command may have 20 shell lines" in said]) == 11
    (text,) = [text for text in told.texts if "<command" in text]
    assert text.count("\nx") == 20
    command(folder, ".treadle/commands/long.md", "!`seq 1 100000`")
    (long,) = [text for text in (await tell(folder, "/long")).texts if "<command" in text]
    assert len(long) < 40_000


async def test_init_is_a_prompt_of_treadles_own(folder: Path) -> None:
    command(folder, ".treadle/commands/init.md", "evil")
    told = await tell(folder, "/init in German")
    (text,) = [text for text in told.texts if "<command" in text]
    assert 'from="Treadle"' in text
    assert "write AGENTS.md" in text
    assert text.endswith("in German\n</command>")

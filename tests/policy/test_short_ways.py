"""What is answered in a short way is what the long way answers, over random lines, words and trees of links."""

import os
import random
from pathlib import Path

from treadle.app.security.file_view import DiskView
from treadle.policy.decision_context import RememberedFiles
from treadle.policy.shell import expand, shell_parser
from treadle.policy.shell.expand import Variables
from treadle.policy.shell.syntax import Cursor, Literal, ShellScript, Word

_WORDS = (
    "if", "then", "time", "in", "do", "done", "case", "esac", "select", "function", "coproc", "time-x", "if.", "fi/",
    "while:", "until", "elif", "export", "[", "[[", "{", "}", "!", "1", "12", "a.b", "b/c:d", "é", "²", "٣", "_", "+",
    "a=b", "a+=b", "-e", "%1", "@x", "^", "~", "#", "x#", "\u00a0", "a\u2028b", "\u200b", "ls", "x",
)  # fmt: skip
_CHARACTERS = [chr(code) for code in range(1, 0x800)]
_NAMES, _TARGETS = (
    "abcd",
    ("..", ".", "../..", "a", "b/c", "/proc/self/cwd", "/proc/self/fd/0", "/nowhere/x", "/dev/fd"),
)


def _read_in_full(line: str) -> ShellScript:
    return shell_parser.script_until(Cursor(line, shell_parser.script_until), "")


def test_a_line_of_plain_words_is_read_as_the_parser_reads_it() -> None:
    chance = random.Random(1)
    lines = [" ".join(chance.choices(_WORDS, k=chance.randint(1, 4))) for _ in range(4_000)]
    lines += [line for each in _CHARACTERS for line in (each, f"a{each}", f"a {each}b", f"a b{each}")]
    plain = [line for line in lines if shell_parser._PLAIN_COMMAND.fullmatch(line)]
    assert len(plain) > 1_000
    assert [line for line in plain if shell_parser.parse(line) != _read_in_full(line)] == []


def test_a_word_that_means_itself_expands_to_itself() -> None:
    texts = [text for each in _CHARACTERS for text in (each, f"a:{each}", f"a={each}/b")]
    meant = [(text, quoted) for text in texts if expand._MEANS_ITSELF.fullmatch(text) for quoted in (False, True)]
    assert len(meant) > 1_000
    home = Variables("/home/x")
    for text, quoted in meant:
        # Behind an empty text a word takes the long way.
        long = Word(text, (Literal("", quoted=False), Literal(text, quoted=quoted)))
        assert expand.expand_word(long, home, "/w") == [text]
        assert expand.expand_word(Word(text, (Literal(text, quoted=quoted),)), home, "/w") == [text]


def test_a_path_leads_where_it_leads_without_its_folder_being_remembered(tmp_path: Path) -> None:
    chance, view, asked = random.Random(2), DiskView(), 0
    for number in range(12):
        root = str(tmp_path / str(number))
        Path(root).mkdir()
        folders, there = [root], [root]
        for _ in range(20):
            path = f"{chance.choice(folders)}/{chance.choice(_NAMES)}"
            if os.path.lexists(path):
                continue
            there.append(path)
            if chance.random() < 0.5:
                Path(path).mkdir()
                folders.append(path)
            else:
                Path(path).symlink_to(chance.choice((*_TARGETS, path, chance.choice(there), f"/proc/self/root{root}")))
        remembered = RememberedFiles(view)
        starts = (root, root, root, "", "/proc/self/cwd", "/./proc/self", "//proc/self/cwd", "/dev", "/tmp/../proc")
        names = (*_NAMES, "..", "..", ".", "gone", "fd", "cwd", "self")
        for _ in range(150):
            path = "/".join(
                (chance.choice(starts), *chance.choices(names, k=chance.randint(1, 6)), *chance.choice(([], [""])))
            )
            asked += 1
            assert (path, remembered.resolve(path)) == (path, view.resolve(path))
    assert asked == 1_800

"""What a lone `echo` or `printf` of known words prints, told without running it."""

import re
from collections.abc import Iterator, Sequence

_CONVERSION = re.compile(r"%(.?)", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:x([0-9A-Fa-f]{1,2})|([1-7][0-7]{0,2})|(.?))", re.DOTALL)
_LETTERS = {"n": "\n", "t": "\t", "\\": "\\", '"': '"', "'": "'"}
_MOST_ROUNDS = 32


class _NotToldError(Exception):
    """The command may print something else than can be told."""


def printed(words: Sequence[str]) -> str | None:
    """Give what the command prints, or None where that is not told: other programs, odd options, odd formats."""
    try:
        match words:
            case ["echo", *rest]:
                return _echo(rest)
            case ["printf", "--", form, *values] | ["printf", form, *values] if form and form[0] != "-":
                return _printf(form, values)
            case _:
                return None
    except _NotToldError:
        return None


def _echo(words: list[str]) -> str:
    decodes = False
    while words and re.fullmatch(r"-[neE]+", words[0]):
        decodes |= "e" in words[0]
        words = words[1:]
    text = " ".join(words)
    if decodes and re.search(r"\\[0-7]", text):
        raise _NotToldError
    return _decoded(text) if decodes else text


def _printf(form: str, values: list[str]) -> str:
    """Use the format again and again until all values are written, as the shell does; missing ones are empty."""
    form = _decoded(form)
    kinds = [kind for kind in _CONVERSION.findall(form) if kind != "%"]
    if not set(kinds) <= {"s", "b"} or (kinds and len(values) > _MOST_ROUNDS):
        raise _NotToldError
    rounds = max(1, -(-len(values) // len(kinds))) if kinds else 1
    pending = iter(values)
    return "".join(_filled(form, pending) for _ in range(rounds))


def _filled(form: str, values: Iterator[str]) -> str:
    def fill(match: re.Match[str]) -> str:
        if match[1] == "%":
            return "%"
        value = next(values, "")
        return _decoded(value) if match[1] == "b" else value

    return _CONVERSION.sub(fill, form)


def _decoded(text: str) -> str:
    def decode(match: re.Match[str]) -> str:
        in_hex, in_octal, letter = match.groups()
        if letter is not None:
            if letter not in _LETTERS:
                raise _NotToldError
            return _LETTERS[letter]
        code = int(in_hex, 16) if in_hex else int(in_octal, 8)
        if not 32 <= code < 127:
            raise _NotToldError
        return chr(code)

    return _ESCAPE.sub(decode, text)

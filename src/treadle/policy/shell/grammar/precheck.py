"""Characters that hide what a line does; looked for before anything else."""

import unicodedata

_ALLOWED_CONTROLS = frozenset("\t\n")
_EXOTIC_BLANKS = frozenset({"Zs", "Zl", "Zp"})
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co"})


def hidden_characters(text: str) -> list[str]:
    """Name the characters that are invisible, change direction, look like blanks, or control the terminal."""
    if text.isascii() and text.isprintable():
        return []
    found = {char for char in set(text) if not char.isascii() or not char.isprintable()} - _ALLOWED_CONTROLS
    return sorted(
        f"U+{ord(char):04X}"
        for char in found
        if unicodedata.category(char) in _HIDDEN
        or unicodedata.category(char) in _EXOTIC_BLANKS
        or char in "\u115f\u1160\u3164\uffa0\u2800\u034f"
    )


def has_lookalikes(text: str) -> bool:
    """Whether a word mixes ASCII letters with letters of another script, as look-alike names do."""
    return not text.isascii() and any(_mixes(word) for word in set(text.split()) if not word.isascii())


def _mixes(word: str) -> bool:
    scripts = {unicodedata.name(char, "?").split()[0] for char in set(word) if char.isalpha()}
    return "LATIN" in scripts and bool(scripts & {"CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC", "FULLWIDTH"})

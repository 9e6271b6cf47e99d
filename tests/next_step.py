"""The rule for what a model reads when something did not work: the text ends by saying what to do next."""

import re

_VERBS = """
    act add ask base begin call check choose close continue copy correct download do don't end find finish fix give
    install launch leave list look make move name narrow open outline page pick press put quote read save say scroll
    search send set shrink skip split start stop swap switch take tell trust try use wait write
"""
_BEFORE = r"(?:(?:if|until|where|for|before|after|when|as|to) [^:;]*?[,:]? )?"
_LINKS = r"(?:(?:or|and|then|so|but|better|instead|please) )*"
_FORM = r"(?:parameter \S+|<\w+>|the arguments) must (?:not )?be "
_INSTRUCTION = re.compile(
    rf"{_LINKS}{_BEFORE}{_LINKS}\b(?:{'|'.join(_VERBS.split())})\b|did you mean\b|{_FORM}", re.IGNORECASE
)
_QUOTED = re.compile(r"\s*\d+ [|:-] |={3}|\$ ")
_SENTENCE = re.compile(r"(?<=[.!?\]])\s+|\n")
_CLAUSE = re.compile(r"(?<=[.;:!?)])\s+|, (?=and |or |then )|; | \(")


def says_what_to_do(text: str) -> bool:
    """Whether one of the last two sentences, beside what is quoted from a file or page, is an instruction."""
    prose = [line for line in text.strip().splitlines() if not _QUOTED.match(line) and not line.endswith(":")]
    sentences = [sentence for sentence in _SENTENCE.split("\n".join(prose)) if sentence]
    return any(
        _INSTRUCTION.match(clause.strip("[] `'\"")) is not None
        for sentence in sentences[-2:]
        for clause in _CLAUSE.split(sentence)
    )

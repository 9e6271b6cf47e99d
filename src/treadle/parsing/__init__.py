"""Incremental parsers: streamed replies to text, reasoning and tool calls."""

from treadle.parsing.arguments import typed_arguments, validate_arguments
from treadle.parsing.blocks import (
    Block,
    CallComplete,
    CallStarted,
    Malformation,
    ParameterDelta,
    ReasoningDelta,
    TextDelta,
    ToolGrammar,
    grammar_of,
)
from treadle.parsing.chunks import CallFragment, ParsedReply, parse_chunks
from treadle.parsing.native import NativeReader
from treadle.parsing.reasoning import ReasoningSplitter
from treadle.parsing.xml import XmlReader

__all__ = [
    "Block",
    "CallComplete",
    "CallFragment",
    "CallStarted",
    "Malformation",
    "NativeReader",
    "ParameterDelta",
    "ParsedReply",
    "ReasoningDelta",
    "ReasoningSplitter",
    "TextDelta",
    "ToolGrammar",
    "XmlReader",
    "grammar_of",
    "parse_chunks",
    "typed_arguments",
    "validate_arguments",
]

"""Incremental parsers: streamed replies to text, reasoning and tool calls."""

from treadle.parsing.aliases import meant_calls, near_tool
from treadle.parsing.call_arguments import validate_arguments
from treadle.parsing.chunks import CallFragment, ParsedReply, parse_chunks
from treadle.parsing.coercion import coerced
from treadle.parsing.invented import InventedResults
from treadle.parsing.native import NativeReader
from treadle.parsing.notation import foreign_call
from treadle.parsing.own_arguments import own_parameters
from treadle.parsing.reasoning import ReasoningSplitter, unopened_reasoning
from treadle.parsing.reply_blocks import (
    CallComplete,
    CallOpened,
    ContentDelta,
    Malformation,
    ParameterDelta,
    ParserEvent,
    ReasoningDelta,
    ToolGrammar,
    grammar_of,
)
from treadle.parsing.text_calls import WrittenCalls, written_calls
from treadle.parsing.xml import XmlReader

__all__ = [
    "CallComplete",
    "CallFragment",
    "CallOpened",
    "ContentDelta",
    "InventedResults",
    "Malformation",
    "NativeReader",
    "ParameterDelta",
    "ParsedReply",
    "ParserEvent",
    "ReasoningDelta",
    "ReasoningSplitter",
    "ToolGrammar",
    "WrittenCalls",
    "XmlReader",
    "coerced",
    "foreign_call",
    "grammar_of",
    "meant_calls",
    "near_tool",
    "own_parameters",
    "parse_chunks",
    "unopened_reasoning",
    "validate_arguments",
    "written_calls",
]

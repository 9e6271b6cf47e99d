"""What is read for the model because it has one possible meaning: a code for each kind, and what it says."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import TypeVar

_Made = TypeVar("_Made")


class Reading(StrEnum):
    """The kinds of readings, as they stand in the log. A code keeps its meaning for ever."""

    EMPTY_OBJECTS = "empty_objects"
    REPEATED_OBJECT = "repeated_object"
    RAW_CHARACTERS = "raw_characters"
    JSON_CALL = "json_call"
    MARKED_CALL = "marked_call"
    TAGGED_CALL = "tagged_call"
    TOOL_SPELLING = "tool_spelling"
    TOOL_NAME = "tool_name"
    TOOL_COMMAND = "tool_command"
    OTHER_EDIT_TOOL = "other_edit_tool"
    SERVER_TOOL = "server_tool"
    PARAMETER_NAME = "parameter_name"
    EXPLANATION = "explanation"
    EDIT_NOTATION = "edit_notation"
    PATH_OF_PATCH = "path_of_patch"
    PATH_LIST = "path_list"
    ROOT_PATH = "root_path"
    LINE_BOUNDS = "line_bounds"
    LINE_PAIR = "line_pair"
    MILLISECONDS = "milliseconds"
    NOT_GIVEN = "not_given"
    TEXT_VALUE = "text_value"
    JSON_TEXT = "json_text"
    ONE_ITEM = "one_item"
    NUMBER_FOR_TEXT = "number_for_text"
    WHOLE_NUMBER = "whole_number"
    WORD_CASE = "word_case"
    COMMAND_WORDS = "command_words"
    COORDINATE = "coordinate"
    OBJECT_FOR_TEXT = "object_for_text"


SENTENCES: Mapping[str, str] = MappingProxyType(
    {
        Reading.EMPTY_OBJECTS: "Empty JSON objects came before the arguments.",
        Reading.REPEATED_OBJECT: "The same arguments were written more than once.",
        Reading.RAW_CHARACTERS: "Strings of the JSON had raw line breaks or tabs.",
        Reading.JSON_CALL: "The whole reply was one call, written as JSON in its text.",
        Reading.MARKED_CALL: "The call was JSON in the text, in the marks of another model's format.",
        Reading.TAGGED_CALL: "The call was written in the text, in tags of another format.",
        Reading.TOOL_SPELLING: "The name of the tool was spelled or qualified in another way.",
        Reading.TOOL_NAME: "The tool had the name that another agent gives it.",
        Reading.TOOL_COMMAND: "A command of another agent's editor or shell named the tool.",
        Reading.OTHER_EDIT_TOOL: "The edit was for the edit tool that the model was not given.",
        Reading.SERVER_TOOL: "A tool of an MCP server was called directly instead of through `use_mcp_tool`.",
        Reading.PARAMETER_NAME: "A parameter had another agent's name, or was spelled in another way.",
        Reading.EXPLANATION: "A parameter that changes nothing, such as an explanation, was left out.",
        Reading.EDIT_NOTATION: "The edit had another form than the tool's own.",
        Reading.PATH_OF_PATCH: "Only the patch named the file.",
        Reading.PATH_LIST: "Paths were given as a list.",
        Reading.ROOT_PATH: "The path of the workspace's root was left out.",
        Reading.LINE_BOUNDS: "A number that is no line was given for the beginning or the end of a file.",
        Reading.LINE_PAIR: "The range of lines was given as a pair.",
        Reading.MILLISECONDS: "A time limit was in milliseconds instead of seconds.",
        Reading.NOT_GIVEN: "An optional parameter was null or empty.",
        Reading.TEXT_VALUE: "A number, a boolean or null was written as a string.",
        Reading.JSON_TEXT: "A list or an object was written as JSON in a string.",
        Reading.ONE_ITEM: "One value was given for a list of one.",
        Reading.NUMBER_FOR_TEXT: "A number was given for a string.",
        Reading.WHOLE_NUMBER: "A whole number was written with a decimal point.",
        Reading.WORD_CASE: "One of several words had other upper and lower case, or blanks around it.",
        Reading.COMMAND_WORDS: "A program and its arguments were given as a list.",
        Reading.COORDINATE: "A place on the screen was given as a list or an object.",
        Reading.OBJECT_FOR_TEXT: "An object was given where its JSON is wanted as a string.",
    }
)
"""What each code says, in one plain sentence. A log of a newer Treadle may have a code that is not here."""


def noted(reading: Reading, before: _Made, after: _Made, found: list[Reading]) -> _Made:
    """Note the reading in `found` where it made a difference; gives what was made."""
    if after != before:
        found.append(reading)
    return after

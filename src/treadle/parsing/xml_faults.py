"""What can be wrong with an XML call, worded for the model."""

from collections.abc import Sequence

from msgspec import Struct


class Fault(Struct, frozen=True):
    """The code and the message of a malformation."""

    code: str
    message: str


def unclosed_call(tool: str, parameter: str) -> Fault:
    """The reply ended, or went on to another call, inside the call."""
    where = f"parameter <{parameter}> of <{tool}>" if parameter else f"<{tool}>"
    closing = f"</{parameter}></{tool}>" if parameter else f"</{tool}>"
    return _fault("unclosed_call", f"{where} was never closed", f"and end it with {closing}")


def unclosed_parameter(tool: str, parameter: str) -> Fault:
    """The tool is closed while a parameter is open."""
    what = f"<{parameter}> was not closed before </{tool}>"
    return _fault("unclosed_parameter", what, f"with </{parameter}> after the value")


def unknown_parameter(tool: str, parameter: str, known: Sequence[str]) -> Fault:
    """The call has a tag that the tool does not know."""
    names = _listed(known) or "none"
    what = f"<{tool}> has no parameter <{parameter}>; its parameters are: {names}"
    return _fault("unknown_parameter", what, "with these only")


def stray_text(tool: str, parameter: str) -> Fault:
    """There is something between the last parameter and the tool's closing tag."""
    what = f"there is text between </{parameter}> and </{tool}>"
    return _fault("stray_text", what, "with only parameters in it")


def missing_parameter(tool: str, missing: Sequence[str]) -> Fault:
    """The call lacks parameters that it must have."""
    return _fault("missing_parameter", f"<{tool}> needs {_listed(missing)}", "with every needed parameter")


def _fault(code: str, what: str, remedy: str) -> Fault:
    return Fault(code, f"The call was not run: {what}. Send the whole call again {remedy}.")


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"<{name}>" for name in names)

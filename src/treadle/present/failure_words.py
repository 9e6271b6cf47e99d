"""A failed call of a model in words: what happened, why, and what a person can do."""

from typing import assert_never

from treadle.present.escape import printable
from treadle.present.words import span
from treadle.protocol.children import ChildOutcome
from treadle.protocol.errors import ConfigError
from treadle.protocol.models import ErrorKind, ModelError
from treadle.protocol.notifications import CHILD_OUTCOMES
from treadle.protocol.patterns import regex
from treadle.providers.catalogue import parse_ref
from treadle.providers.failures import login_command, sentence, whose_key

_WITHOUT_RESULT = (ChildOutcome.FAILED, ChildOutcome.REFUSED)
_LONG = 60.0
"""Seconds; when a limit resets later than that, people are told when."""


def is_failure(ended: str) -> bool:
    """Whether a turn that ended so failed: it brought no result, and neither a person nor a limit stopped it."""
    return any(ended == stop and outcome in _WITHOUT_RESULT for stop, outcome in CHILD_OUTCOMES.items())


def provider_of(model: str) -> str:
    """Name the provider of a model (`provider/name`) as people know it, and the profile with whose key it is called."""
    try:
        profile = printable(model.partition("/")[0].partition("@")[2])
        title = parse_ref(model)[0].title
        return f"{title}, {profile}" if profile else title
    except ConfigError:
        return printable(model.partition("/")[0]) or "The provider"


def describe_failure(error: ModelError, model: str) -> str:
    """Say in one sentence that a call of a model failed."""
    who = provider_of(model)
    status = f" ({error.status})" if error.status is not None else ""
    match error.kind:
        case ErrorKind.AUTHENTICATION:
            return f"{who} refused the API key{status}."
        case ErrorKind.BALANCE:
            return f"The account at {who} has no credit left{status}."
        case ErrorKind.RATE_LIMIT:
            return f"{who} takes no more requests for now{status}."
        case ErrorKind.OVERLOADED:
            return f"{who} is overloaded{status}."
        case ErrorKind.NETWORK if error.status is not None:  # the reply had begun
            return f"{who} ended its reply in the middle."
        case ErrorKind.NETWORK:
            return f"{who} could not be reached."
        case ErrorKind.TIMEOUT:
            return f"{who} did not answer in time."
        case ErrorKind.NOT_FOUND:
            return f"{who} does not know the model{status}."
        case ErrorKind.CONTEXT_TOO_LONG:
            return "The conversation is too long for the model."
        case _:
            return f"The model call failed{status}."


def waiting_words(error: ModelError, model: str, *, resets: bool) -> str:
    """Say in one sentence what the next attempt waits for, if that is a limit of the provider; else how it failed.

    Of what was not reached that is the address.
    """
    if resets:
        return f"Waiting until the limit of {provider_of(model)} resets."
    if error.paced:
        return f"Waiting, as the limit of {provider_of(model)} is used up for now."
    unreached = error.kind in (ErrorKind.NETWORK, ErrorKind.TIMEOUT) and error.message
    return printable(error.message.strip()) if unreached else describe_failure(error, model)


_SENTENCES = regex(r"(?<=\.) ")
_ANOTHER, _CHOOSES = "use another model: /model PROVIDER/NAME", "choose another model"
"""The way to another model in a terminal, and where a button stands beside the words."""


def advice(error: ModelError, model: str, *, buttons: bool = False) -> str:
    """Say what a person can do about a failed model call without leaving the session.

    With `buttons` for another key and another model beside it no commands are named.
    """
    another = _CHOOSES if buttons else _ANOTHER
    of_key = buttons and (needs_key(error) or "`" in error.fix)
    if of_key or error.fix:
        return _of_key(error) if of_key else error.fix
    match error.kind:
        case ErrorKind.AUTHENTICATION:
            return f"{printable(login_command(model.partition('/')[0]))}, or /model for another provider."
        case ErrorKind.BALANCE:
            return f"Add credit to the account, or {another}."
        case ErrorKind.BAD_REQUEST:
            return (
                f"The provider's words say what it does not take. Leave that out, or {another}. "
                "If no request works, check the base URL."
            )
        case ErrorKind.PERMISSION | ErrorKind.NOT_FOUND:
            return f"Check the model's name and the base URL, or {another}."
        case ErrorKind.RATE_LIMIT | ErrorKind.OVERLOADED | ErrorKind.SERVER | ErrorKind.EMPTY_REPLY:
            return _later(error, another)
        case ErrorKind.NETWORK | ErrorKind.TIMEOUT | ErrorKind.MALFORMED_STREAM:
            return "Check the network and the base URL, then say how to continue."
        case ErrorKind.CONTEXT_TOO_LONG:
            larger = "a larger window" if buttons else "a larger window: /model PROVIDER/NAME"
            return (
                f"Continue with a model with {larger}, then say how to continue. "
                "Or start a new session, with smaller files or parts of them."
            )
        case ErrorKind.CONTENT_FILTER | ErrorKind.CANCELLED | ErrorKind.BUDGET:
            return "Rephrase the request." if error.kind is ErrorKind.CONTENT_FILTER else "Say how to continue."
        case _:
            assert_never(error.kind)


def needs_key(error: ModelError) -> bool:
    """Whether another key may help: the one that was sent was refused, or does not permit what was asked."""
    names = error.kind is ErrorKind.PERMISSION and whose_key(error.message)
    return error.kind is ErrorKind.AUTHENTICATION or bool(names)


def _of_key(error: ModelError) -> str:
    """Say whose key was refused, and what the buttons for another key and another model beside it do not do.

    The fix that comes along names commands in some sentences: these say what the buttons say. Where nothing is known of
    the key, the provider's own words stand there.
    """
    plain = [one for one in _SENTENCES.split(error.fix) if one and "`" not in one]
    if error.kind is ErrorKind.PERMISSION:
        plain.append("Choose another model, or ask the provider for access.")
    said = " ".join(filter(None, [printable(whose_key(error.message)), *plain]))
    return said or sentence(printable(error.message.strip()))


def _later(error: ModelError, another: str) -> str:
    if error.kind is ErrorKind.RATE_LIMIT and (error.retry_after or 0.0) > _LONG:
        return (
            f"The limit resets in {span(error.retry_after or 0.0)}. Say how to continue then, or {another}. "
            "With wait_for_reset = true in your settings a session waits by itself."
        )
    return f"Wait a while and say how to continue, or {another}."


def reset_words(error: ModelError) -> str:
    """Say of a limit that resets later when that was to be, and what a program can do; empty for any other error."""
    if error.kind is not ErrorKind.RATE_LIMIT or (error.retry_after or 0.0) <= _LONG:
        return ""
    return (
        f"When the call failed, the limit was to reset in {span(error.retry_after or 0.0)}. Send a message then, or "
        "choose another model. With wait_for_reset = true in the settings a session waits by itself."
    )


def facts_of(error: ModelError) -> str:
    """Say why a model call failed, with what the provider gave to find it by."""
    facts = [] if error.status is None else [f"HTTP {error.status}"]
    facts += [f"request {error.request_id}"] if error.request_id else []
    return f"{error.message.strip()} ({', '.join(facts)})" if facts else error.message.strip()

"""Driving Treadle with the Python SDK for Claude Code; only modules that `require` it import this."""

from typing import Any

from claude_agent_sdk import (
    AssistantMessage,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    ResultError,
    ResultMessage,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
    query,
)

from tests.hosts.place import Host


def options(host: Host, environment: dict[str, str], **said: Any) -> ClaudeAgentOptions:
    return ClaudeAgentOptions(cli_path=str(host.cli), cwd=str(host.folder), env=environment, **said)


def texts(messages: list[Any]) -> list[str]:
    return [
        block.text
        for message in messages
        if isinstance(message, AssistantMessage)
        for block in message.content
        if isinstance(block, TextBlock)
    ]


def uses(messages: list[Any]) -> list[tuple[str, dict[str, Any]]]:
    return [
        (block.name, block.input)
        for message in messages
        if isinstance(message, AssistantMessage)
        for block in message.content
        if isinstance(block, ToolUseBlock)
    ]


def results(messages: list[Any]) -> list[ToolResultBlock]:
    return [
        block
        for message in messages
        if isinstance(message, UserMessage) and isinstance(message.content, list)
        for block in message.content
        if isinstance(block, ToolResultBlock)
    ]


def end(messages: list[Any]) -> ResultMessage:
    (found,) = [message for message in messages if isinstance(message, ResultMessage)]
    return found


async def failed(said: ClaudeAgentOptions) -> tuple[list[Any], Any]:
    """Run a query that ends in an error; gives the messages before it, and the error."""
    messages: list[Any] = []
    try:
        async for message in query(prompt="go", options=said):
            messages.append(message)  # noqa: PERF401 - what came before the error counts
    except ResultError as error:
        return messages, error
    raise AssertionError("it ended well")


async def asked(client: ClaudeSDKClient, prompt: str) -> list[Any]:
    await client.query(prompt)
    return [message async for message in client.receive_response()]

"""The messages of the Agent Client Protocol that this agent reads and sends, as the published schema names them."""

from typing import Any, TypeAlias

from msgspec import Struct, field


class AcpValue(Struct, kw_only=True, omit_defaults=True, rename="camel"):
    """A value of the protocol: camelCase on the wire, fields without a value left out, unknown ones ignored."""


class Implementation(AcpValue, kw_only=True):
    """The name of a program and its version."""

    name: str
    version: str
    title: str = ""


class FileCapabilities(AcpValue, kw_only=True):
    """Which files the client reads and writes for the agent."""

    read_text_file: bool = False
    write_text_file: bool = False


class ElicitationSupport(AcpValue, kw_only=True):
    """Which forms the client shows; each is an object where it is supported."""

    form: dict[str, Any] | None = None
    url: dict[str, Any] | None = None


class AuthSupport(AcpValue, kw_only=True):
    """Whether the client runs a program in a terminal to sign in."""

    terminal: bool = False


class ClientCapabilities(AcpValue, kw_only=True):
    """What the client can do."""

    fs: FileCapabilities | None = None
    terminal: bool | None = False
    elicitation: ElicitationSupport | None = None
    auth: AuthSupport | None = None


class InitializeRequest(AcpValue, kw_only=True):
    """The first message of a client."""

    protocol_version: int
    client_capabilities: ClientCapabilities | None = None
    client_info: dict[str, Any] | None = None


class AuthMethod(AcpValue, kw_only=True):
    """One way to sign in. With `type` terminal the client runs this program with the `args` in a terminal."""

    id: str
    name: str
    description: str
    type: str | None = None
    args: tuple[str, ...] | None = None


class InitializeAnswer(AcpValue, kw_only=True, omit_defaults=False):
    """What the agent is and can do."""

    protocol_version: int
    agent_capabilities: dict[str, Any]
    auth_methods: tuple[AuthMethod, ...]
    agent_info: Implementation
    meta: dict[str, Any] = field(name="_meta")


class AuthenticateRequest(AcpValue, kw_only=True):
    """The client has signed in."""

    method_id: str


class LogoutRequest(AcpValue, kw_only=True):
    """The client wants to be signed out."""


class NameValue(AcpValue, kw_only=True):
    """A variable or a header."""

    name: str
    value: str


class ClientServer(AcpValue, kw_only=True):
    """An MCP server of the client; without a `type` it is a program."""

    name: str
    type: str = ""
    command: str = ""
    args: tuple[str, ...] = ()
    env: tuple[NameValue, ...] = ()
    url: str = ""
    headers: tuple[NameValue, ...] = ()
    server_id: str = ""


class OpenRequest(AcpValue, kw_only=True):
    """A session is to be opened in a folder: a new one, or the one of `session_id`."""

    cwd: str
    mcp_servers: tuple[ClientServer, ...] | None = ()
    additional_directories: tuple[str, ...] | None = None
    session_id: str = ""


class SessionRequest(AcpValue, kw_only=True):
    """Something is to be done with a session."""

    session_id: str


class ListRequest(AcpValue, kw_only=True):
    """The sessions are to be listed, of one folder if given; `cursor` is where the last list ended."""

    cwd: str | None = None
    cursor: str | None = None


class ModeRequest(AcpValue, kw_only=True):
    """Another mode is chosen."""

    session_id: str
    mode_id: str


class OptionRequest(AcpValue, kw_only=True):
    """Another value of an option is chosen."""

    session_id: str
    config_id: str
    value: str | bool


class ResourceContents(AcpValue, kw_only=True):
    """The contents of a resource: a text, or a `blob` in base64."""

    uri: str
    text: str | None = None
    blob: str | None = None
    mime_type: str | None = None


class PromptBlock(AcpValue, kw_only=True):
    """One block of a prompt: text, image, audio, resource_link or resource."""

    type: str
    text: str | None = None
    data: str | None = None
    mime_type: str | None = None
    uri: str | None = None
    name: str | None = None
    resource: ResourceContents | None = None


class PromptRequest(AcpValue, kw_only=True):
    """The user asks for something."""

    session_id: str
    prompt: tuple[PromptBlock, ...]
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class PromptUsage(AcpValue, kw_only=True):
    """The tokens that a turn used."""

    total_tokens: int
    input_tokens: int
    output_tokens: int
    cached_read_tokens: int | None = None
    cached_write_tokens: int | None = None


class PromptAnswer(AcpValue, kw_only=True):
    """The end of a turn."""

    stop_reason: str
    usage: PromptUsage | None = None


class SelectValue(AcpValue, kw_only=True):
    """One value of an option."""

    value: str
    name: str
    description: str | None = None


class SelectOption(AcpValue, kw_only=True):
    """An option of a session, with all its values."""

    id: str
    name: str
    category: str
    current_value: str
    options: tuple[SelectValue, ...]
    description: str | None = None
    type: str


class SessionMode(AcpValue, kw_only=True):
    """One mode."""

    id: str
    name: str
    description: str


class SessionModes(AcpValue, kw_only=True):
    """The modes, and the one that is in force."""

    current_mode_id: str
    available_modes: tuple[SessionMode, ...]


class OpenAnswer(AcpValue, kw_only=True):
    """A session is open; its id where the client does not know it yet."""

    session_id: str | None = None
    modes: SessionModes
    config_options: tuple[SelectOption, ...]


class SessionInfo(AcpValue, kw_only=True):
    """One session of a list; the time is ISO 8601."""

    session_id: str
    cwd: str
    title: str | None = None
    updated_at: str | None = None


class ListAnswer(AcpValue, kw_only=True):
    """A page of sessions; `next_cursor` where there are more."""

    sessions: tuple[SessionInfo, ...]
    next_cursor: str | None = None


class PermissionChoice(AcpValue, kw_only=True):
    """One answer that the user can choose."""

    option_id: str
    name: str
    kind: str


class CallLocation(AcpValue, kw_only=True):
    """A file that a call is about."""

    path: str
    line: int | None = None


ToolContent: TypeAlias = dict[str, Any]
"""A block of a tool call's content: text, a diff of a file, or a terminal."""


class ToolCallShape(AcpValue, kw_only=True):
    """A tool call, or what is new of it; `content` and `locations` replace the earlier ones."""

    tool_call_id: str
    title: str | None = None
    kind: str | None = None
    status: str | None = None
    content: tuple[ToolContent, ...] | None = None
    locations: tuple[CallLocation, ...] | None = None
    raw_input: Any = None
    raw_output: Any = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class ToolCallBegan(ToolCallShape, kw_only=True, tag_field="sessionUpdate", tag="tool_call"):
    """A call that the client does not know yet."""


class ToolCallMoved(ToolCallShape, kw_only=True, tag_field="sessionUpdate", tag="tool_call_update"):
    """What is new of a call."""


class PermissionRequest(AcpValue, kw_only=True):
    """The user is asked."""

    session_id: str
    tool_call: ToolCallShape
    options: tuple[PermissionChoice, ...]


class EditedText(AcpValue, kw_only=True):
    """What the user made of an edit: the whole text of the file as it was compared, and what it is to become."""

    old_text: str
    new_text: str


class ChoiceDetails(AcpValue, kw_only=True):
    """What goes along with a choice: a comment, and the edit as the user wants it."""

    comment: str = ""
    edited: EditedText | None = None


class ChoiceMeta(AcpValue, kw_only=True):
    """What clients that know this agent send with a choice."""

    treadle: ChoiceDetails | None = None


class ChosenOption(AcpValue, kw_only=True):
    """What the user chose, or that the question is over."""

    outcome: str
    option_id: str | None = None
    meta: "ChoiceMeta | None" = field(default=None, name="_meta")


class PermissionAnswer(AcpValue, kw_only=True):
    """The answer of the user."""

    outcome: ChosenOption


class FormAnswer(AcpValue, kw_only=True):
    """What the user entered: `action` is accept, decline or cancel."""

    action: str
    content: dict[str, Any] | None = None


class FileText(AcpValue, kw_only=True):
    """The text of a file as the client has it."""

    content: str


class TerminalCreated(AcpValue, kw_only=True):
    """A terminal of the client."""

    terminal_id: str

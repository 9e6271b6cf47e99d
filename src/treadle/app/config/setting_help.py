"""What each setting is for, in one line; docs/configuration.md says more."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

SETTING_HELP: Mapping[str, str] = MappingProxyType(
    {
        "model": "The model of new sessions, provider/name. Empty: the first provider that has a key.",
        "mode": "How much runs without asking in new sessions.",
        "fallback": "Takes over for the rest of a turn when the model's provider keeps failing.",
        "profile": "The profile whose keys new sessions use. Empty: the usual keys.",
        "base_url": "The address of the provider that `model` names.",
        "thinking_budget": "Tokens that the model may think before it answers; 0 turns thinking off.",
        "tool_protocol": "How calls are written; by default what the model can.",
        "language": "The language in which the model writes to you; by default the one that you write in.",
        "instructions": "Your own words to every model, sent with each request.",
        "web_search": "The provider may search the web by itself. A search costs money and sends parts of your text.",
        "code_mode": "The model may write programs that call its tools; they run shut off, where bubblewrap works.",
        "checklist": "The model keeps a checklist of the task.",
        "max_steps": "Model calls in one turn.",
        "max_seconds": "Seconds of one turn, without those for which it waits for your answer.",
        "max_auto_approved": "Calls in a row that may run without asking.",
        "max_unasked": "The old name of max_auto_approved; the lower of both applies.",
        "max_retries": "Failures in a row of a provider before a turn ends; 0: the first ends it.",
        "wait_for_reset": "A turn waits until the provider's limit resets, however long that is.",
        "approve": "Risks that run without asking in every mode but plan, beyond what the mode lets run.",
        "add_dirs": "Folders that are added to each workspace; absolute, or from the home folder.",
        "pass_variables": "Variables that commands get besides the usual harmless ones; never a provider's key.",
        "sandbox": "required: no session starts on a system without a sandbox.",
        "gpu": "Commands in the sandbox get the devices of the GPUs: /dev/nvidia*, /dev/dri, /dev/kfd.",
        "try_first": "Commands that may change something run in a throw-away copy before Treadle asks.",
        "disable_all_hooks": "No hook runs.",
        "hooks_from": "Other programs whose hooks run too.",
        "theme": "Colours of the terminal app; auto asks the terminal.",
        "animation": "Things in the terminal app may move by themselves.",
        "status_line": "A command whose first line is shown below the status of the terminal app.",
        "links": "Paths and addresses in the terminal app can be clicked, where the terminal is known to take links.",
        "editing": "Keys of the terminal app's input line.",
        "screen_reader": "Plain lines instead of the drawn terminal.",
        "budget.turn_cost": "US dollars that one turn may cost.",
        "budget.turn_tokens": "Tokens of every kind that one turn may use.",
        "budget.session_cost": "US dollars that a session may cost.",
        "budget.session_tokens": "Tokens of every kind that a session may use.",
        "budget.day_cost": "US dollars that all sessions together may cost in a day (UTC).",
        "budget.day_tokens": "Tokens of every kind that all sessions together may use in a day (UTC).",
        "budget.ask_at": "Treadle asks once when this part of a budget is used.",
        "context.compact_at": "Older messages are removed at this part of the window, or number of tokens.",
        "context.keep": "The part of the messages that stays then.",
        "context.strategy": "What takes their place: summary, a summary of the model's; drop, facts of the log alone.",
        "context.costly_request": "US dollars of one request above which a cheaper model is named; 0: never.",
        "checkpoints.enabled": "Files are kept before and after changes.",
        "checkpoints.ignored": "All files that git ignores are kept, what builds make included.",
        "network.allow": "Hosts that commands reach without asking: pypi.org, or .example.com with all below it.",
        "network.deny": "Hosts that commands, web_fetch and the browser never reach.",
        "network.needs": "Hosts that commands need: they are asked about together, and nothing is allowed by it.",
        "network.loopback_ports": "Ports of this machine's own servers that commands reach on localhost.",
        "checkpoints.most_megabytes": "Megabytes that the checkpoints of a workspace may take.",
    }
)
"""By the dotted key."""

_OF_TABLES: Mapping[tuple[str, str], str] = MappingProxyType(
    {
        ("modes", "model"): "The model in this mode.",
        ("modes", "thinking_budget"): "Tokens that the model may think in this mode.",
        ("providers", "base_url"): "The address of this provider.",
        ("providers", "wire_api"): "The API that it speaks.",
        ("providers", "api_key_env"): "The variable that holds its key.",
        ("providers", "token_command"): "A program that prints a token for a short time.",
        ("providers", "headers"): "A header that goes along with each request.",
        ("providers", "proxy"): "The proxy to it.",
        ("providers", "ca_file"): "A file of certificates to check it with.",
        ("profiles", "model"): "The model that sessions with this profile begin with.",
        ("profiles", "base_url"): "The address of that model's provider with this profile.",
        ("profiles", "folders"): "Sessions in these folders use the profile by themselves.",
        ("models", "context_window"): "Tokens that this model can hold.",
        ("models", "max_output"): "Tokens of its longest reply.",
        ("models", "input_price"): "US dollars for a million tokens that go in.",
        ("models", "output_price"): "US dollars for a million tokens that come out.",
        ("models", "search_price"): "US dollars for a thousand searches of the web.",
        ("models", "tool_protocol"): "How it writes calls.",
        ("models", "family"): "The family of its system prompt.",
    }
)

_TABLES: Mapping[str, str] = MappingProxyType(
    {
        "keys": "A further key for an action of the terminal app: ctrl-x, alt-x or f5 (docs/terminal.md).",
        "providers": "A limit of this provider, in seconds.",
        "diagnostics": "A checker of edits: docs/diagnostics.md.",
        "hooks": "Programs that run at events of a session: docs/hooks.md.",
    }
)


def help_of(path: Sequence[str]) -> str:
    """Say what a setting at a path of keys is for."""
    name = path[2] if len(path) > 2 else path[-1]
    return SETTING_HELP.get(".".join(path)) or _OF_TABLES.get((path[0], name)) or _TABLES.get(path[0], "")

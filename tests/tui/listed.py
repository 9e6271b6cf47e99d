"""The lists before a session, in the states that a person sees."""

from pathlib import Path

from treadle.cli.trust_question import trust_question
from treadle.store.activation import ActiveFile, ActiveKind
from treadle.store.trusted_folders import Trust, TrustState
from treadle.tui.lists.choice_list import Chooser, Choosing, ListRow, begin, take
from treadle.tui.question.dialog import Key, Press

_RULES = ActiveFile("AGENTS.md", ActiveKind.RULES, "0" * 64)
_ALL = (
    _RULES,
    ActiveFile(".treadle/config.toml", ActiveKind.SETTINGS, "1" * 64),
    ActiveFile(".mcp.json", ActiveKind.SERVERS, "2" * 64),
    *(
        ActiveFile(f".git/hooks/{name}", ActiveKind.HOOK, "3" * 64)
        for name in ("commit-msg", "post-merge", "pre-commit")
    ),
    ActiveFile(".git/config", ActiveKind.GIT, "4" * 64),
)
_SHOP = Path("/work/shop")
_WAYS = ("Add an API key", "Use a model on this machine (Ollama found)", "Try the demo, no key needed")
_PROVIDERS = Choosing(
    title="Whose API key?",
    rows=tuple(ListRow(f"Provider {number}", f"provider-{number}") for number in range(20)),
    problem="Provider 3 refused the key. It is not stored. Get a key on the provider's page.",
    escape=None,
    filters=True,
    first=12,
)


def _trust(items: tuple[ActiveFile, ...], changed: tuple[str, ...] = (), known: tuple[str, ...] = ()) -> Choosing:
    state = TrustState.CHANGED if changed else TrustState.UNTRUSTED
    return trust_question(Trust(workspace=_SHOP, state=state, items=items, changed=changed, known=known))


def _after(choosing: Choosing, *pressed: Press) -> Chooser:
    chooser = begin(choosing, 0.0)
    for one in pressed:
        taken = take(chooser, one, 0.1)
        assert isinstance(taken, Chooser)
        chooser = taken
    return chooser


LISTS = {
    "trust, rules": _after(_trust((_RULES,))),
    "trust, everything, with details": _after(_trust(_ALL), Press(Key.DOWN), Press(Key.DETAILS)),
    "trust, a repository": _after(_trust(())),
    "trust, changed": _after(
        _trust((_RULES,), changed=("AGENTS.md", "CLAUDE.md", ".mcp.json", "x"), known=("AGENTS.md", "CLAUDE.md"))
    ),
    "trust, enter too early": _after(_trust((_RULES,)), Press(Key.ENTER)),
    "no model": _after(Choosing(title="No model yet.", rows=tuple(map(ListRow, _WAYS)), escape=None, leaving="quit")),
    "providers": _after(_PROVIDERS),
    "providers, searched": _after(_PROVIDERS, *(Press(Key.TEXT, char) for char in "er 7")),
    "providers, nothing found": _after(_PROVIDERS, *(Press(Key.TEXT, char) for char in "zz")),
}

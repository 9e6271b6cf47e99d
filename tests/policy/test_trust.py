"""A yes to a folder holds for what was in it."""

from treadle.policy.trust import TrustGrant, TrustState, activation, trust_state, what_changed

HOOK = activation("hook", ".treadle/hooks.toml", b"one")
RULES = activation("rules", "AGENTS.md", b"two")


def _grant(*known: object, trusted: bool = True) -> dict[str, TrustGrant]:
    return {"/ws": TrustGrant(folder="/ws", trusted=trusted, activations=known)}  # type: ignore[arg-type]


def test_a_folder_is_unknown_until_the_user_answers() -> None:
    assert trust_state("/ws", [HOOK], {}) is TrustState.UNKNOWN


def test_a_yes_holds_while_nothing_is_new() -> None:
    states = [trust_state("/ws", found, _grant(HOOK, RULES)) for found in ([HOOK, RULES], [HOOK], [])]
    assert states == [TrustState.TRUSTED] * 3


def test_a_change_asks_again_and_is_named() -> None:
    changed = activation("hook", ".treadle/hooks.toml", b"other")
    assert trust_state("/ws", [changed], _grant(HOOK)) is TrustState.CHANGED
    assert what_changed([RULES, changed], _grant(HOOK, RULES)["/ws"]) == (changed,)


def test_a_no_is_kept() -> None:
    assert trust_state("/ws", [], _grant(trusted=False)) is TrustState.REFUSED


def test_a_yes_is_for_one_folder() -> None:
    assert trust_state("/ws/sub", [], _grant(HOOK)) is TrustState.UNKNOWN

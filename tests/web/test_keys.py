"""Tokens, links and what is given for them."""

from treadle.web.page_keys import LINK_SECONDS, Keys
from treadle.web.screens.devices import browser_in_words


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def test_a_link_ends_with_its_time() -> None:
    clock = Clock()
    keys = Keys(clock)
    early, late = keys.new_link(), keys.new_link()
    clock.now += LINK_SECONDS - 1
    assert keys.let_in(early) is not None
    clock.now += 1
    assert keys.let_in(late) is None
    assert keys.let_in(early) is None


def test_from_another_computer_the_token_opens_nothing_and_a_link_does() -> None:
    keys = Keys()
    assert keys.let_in(keys.token, near=False) is None
    entrance = keys.let_in(keys.new_link(), near=False)
    assert entrance is not None
    visitor = keys.visitor(entrance.cookie)
    assert visitor is not None
    assert visitor.paired


def test_the_key_of_one_browser_is_not_that_of_another() -> None:
    keys = Keys()
    one, other = keys.let_in(keys.token), keys.let_in(keys.token)
    assert one is not None
    assert other is not None
    visitor = keys.visitor(one.cookie)
    assert visitor is not None
    assert (keys.acts(visitor, one.key), keys.acts(visitor, other.key), keys.acts(visitor, one.cookie)) == (
        True,
        False,
        False,
    )
    keys.shut_out(visitor.name)
    assert not keys.acts(visitor, one.key)


def test_of_too_many_browsers_the_one_not_seen_for_longest_goes() -> None:
    clock = Clock()
    keys = Keys(clock)
    first = keys.let_in(keys.token)
    assert first is not None
    clock.now += 1
    second = keys.let_in(keys.token)
    assert second is not None
    for _ in range(99):
        clock.now += 1
        assert keys.visitor(first.cookie) is not None
        assert keys.let_in(keys.token) is not None
    assert keys.visitor(first.cookie) is not None
    assert keys.visitor(second.cookie) is None


def test_browsers_are_named_in_words() -> None:
    edge = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/140.0 Safari/537.36 Edg/140.0"
    phone = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605 Version/18.0 Mobile Safari/604"
    assert browser_in_words(edge) == "Edge on Windows"
    assert browser_in_words(phone) == "Safari on iPhone"
    assert browser_in_words("curl/8") == ""

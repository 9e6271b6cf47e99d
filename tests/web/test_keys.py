"""Tokens, links and what is given for them."""

import msgspec

from treadle.app.hosting.kept_devices import KeptDevices
from treadle.web.page_keys import DEVICE_SECONDS, LINK_SECONDS, Keys
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


def test_from_another_computer_a_link_waits_for_a_yes_and_the_token_opens_nothing() -> None:
    clock = Clock()
    keys = Keys(clock)
    assert keys.knock(keys.token, about="", address="192.0.2.7") is None
    link = keys.new_link()
    knocks = [keys.knock(one, about="Chrome on Android", address="192.0.2.7") for one in (link, keys.new_link(), link)]
    assert knocks[2] is None, "the link is used up by the first one"
    yes, no = (one.id for one in knocks if one is not None)
    assert keys.enter(yes) is None
    assert keys.answer_knock(yes, yes=True)
    assert keys.answer_knock(no, yes=False)
    assert not keys.answer_knock(no, yes=True), "it was answered"
    entrance = keys.enter(yes)
    assert entrance is not None
    visitor = keys.visitor(entrance.cookie)
    assert visitor is not None
    assert visitor.paired
    assert visitor.name == "Chrome on Android"
    assert keys.enter(yes) is None, "once"
    assert keys.enter(no) is None
    late = keys.knock(keys.new_link(), about="", address="192.0.2.7")
    assert late is not None
    clock.now += LINK_SECONDS
    assert not keys.knocks(), "nobody's answer is no"
    keys.answer_knock(late.id, yes=True)
    assert keys.enter(late.id) is None


def test_a_device_that_is_kept_stays_signed_in_by_digests_alone_until_it_is_signed_out() -> None:
    clock = Clock()
    written: list[KeptDevices] = []
    keys = Keys(clock, note=written.append)
    owner, phone, other = (keys.let_in(one) for one in (keys.token, keys.new_link(), keys.new_link()))
    assert owner is not None
    assert phone is not None
    assert other is not None
    keys.keep("browser 1", kept=True)
    assert not written[-1].devices, "a browser of this computer is let in anew"
    keys.keep("browser 2", kept=True)
    assert keys.rename("browser 2", "  Pixel \n 8 ")
    assert not keys.rename("browser 3", "Pixel 8"), "another one is called so"
    stored = msgspec.json.encode(written[-1]).decode()
    assert not any(secret in stored for secret in (phone.cookie, phone.key, keys.token, other.cookie))
    again = Keys(clock, written[-1], written.append)
    assert again.base == keys.base
    visitor = again.visitor(phone.cookie)
    assert visitor is not None
    assert (visitor.name, visitor.paired, again.acts(visitor, phone.key)) == ("Pixel 8", True, True)
    assert [again.visitor(one.cookie) for one in (owner, other)] == [None, None]
    clock.now += DEVICE_SECONDS - 1
    assert Keys(clock, written[-1]).visitor(phone.cookie) is not None
    clock.now += 2
    assert Keys(clock, written[-1]).visitor(phone.cookie) is None, "nobody used it for so long"
    again.shut_out("Pixel 8")
    assert again.visitor(phone.cookie) is None
    assert Keys(clock, written[-1]).base != keys.base, "nothing is kept any more"


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

"""Whatever text is looked for is found wherever it stands, and nothing else is."""

from hypothesis import given
from hypothesis import strategies as st

from treadle.policy.form_search import forms_of

FORMS = st.lists(st.text("abAB01+/é", min_size=8, max_size=60), min_size=1, max_size=6, unique=True)


@given(FORMS, st.binary(max_size=80), st.binary(max_size=40))
def test_each_form_is_found_at_any_place(forms: list[str], before: bytes, behind: bytes) -> None:
    search = forms_of({form: f"name {number}" for number, form in enumerate(forms)})
    for number, form in enumerate(forms):
        data = before + form.encode() + behind
        assert (len(before), len(before) + len(form.encode()), f"name {number}") in list(search.places(data))


@given(FORMS, st.binary(max_size=200))
def test_what_is_found_stands_there(forms: list[str], data: bytes) -> None:
    search = forms_of({form: form for form in forms})
    found = list(search.places(data))
    assert [data[start:end].decode() for start, end, _ in found] == [name for *_, name in found]
    assert {name for *_, name in found} == {form for form in forms if form.encode() in data}


def test_without_forms_nothing_is_found() -> None:
    assert list(forms_of({}).places(b"anything at all that is long enough")) == []

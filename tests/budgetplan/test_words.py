"""Each language has the same words with the same fields and the same marks."""

from __future__ import annotations

import re

import pytest

from seawall.budgetplan.blocks import Span, text
from seawall.budgetplan.words import LANGUAGES, Words

pytestmark = pytest.mark.req("BUDGET-9")


def test_the_keys_are_the_same() -> None:
    english, korean = LANGUAGES["en"], LANGUAGES["ko"]
    assert list(english) == list(korean)


@pytest.mark.parametrize("key", list(LANGUAGES["en"]))
def test_each_word_has_the_same_fields_and_its_marks_in_pairs(key: str) -> None:
    fields = {lang: sorted(set(re.findall(r"\{(\w+)\}", words[key]))) for lang, words in LANGUAGES.items()}
    assert fields["en"] == fields["ko"]
    for words in LANGUAGES.values():
        assert words[key].count("`") % 2 == words[key].replace("`x", "").count("**") % 2 == 0


def test_korean_is_korean() -> None:
    same = [key for key, word in LANGUAGES["ko"].items() if word == LANGUAGES["en"][key]]
    assert same == ["ms"]


def test_what_is_filled_in_marks_nothing() -> None:
    assert text("a **{x}** `{x}` {x}", {"x": "`b` **c** {d}"}) == (
        Span("plain", "a "), Span("strong", "`b` **c** {d}"), Span("plain", " "), Span("code", "`b` **c** {d}"),
        Span("plain", " "), Span("plain", "`b` **c** {d}"))


def test_sentences_are_joined_with_a_space() -> None:
    words = Words({"a": "one", "b": "two"})
    assert "".join(span.text for span in words.joined([words.text("a"), words.text("b")])) == "one two"

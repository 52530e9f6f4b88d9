"""The words of a report in one language, and how they are filled in."""

from __future__ import annotations

from collections.abc import Sequence

from . import english, korean
from .blocks import Span, Text, text

__all__ = ["LANGUAGES", "Words"]

LANGUAGES = {"en": english.WORDS, "ko": korean.WORDS}


class Words:
    """One language."""

    def __init__(self, words: dict[str, str]) -> None:
        self._words = words

    @classmethod
    def of(cls, lang: str) -> Words:
        """By its code, ``en`` or ``ko``."""
        return cls(LANGUAGES[lang])

    def __getitem__(self, key: str) -> str:
        return self._words[key]

    def all(self, *keys: str) -> tuple[str, ...]:
        """Several at once."""
        return tuple(self._words[key] for key in keys)

    def text(self, key: str, **values: object) -> Text:
        """One, filled in."""
        return text(self._words[key], values)

    def starting(self, *starts: str, **values: object) -> dict[str, str]:
        """Those whose keys start so, filled in, without markup."""
        return {key: word.format_map(values) for key, word in self._words.items() if key.startswith(starts)}

    def joined(self, texts: Sequence[Text]) -> Text:
        """Sentences, one after another."""
        spans: list[Span] = []
        for one in texts:
            spans += [*([Span("plain", " ")] if spans else []), *one]
        return tuple(spans)

"""What a report is made of, whatever it is written in afterwards: headings, paragraphs, lists, tables, one chart.

Text from files is kept apart from our own until it is written, so each writer escapes it in its own way.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

__all__ = [
    "Block", "Chart", "Heading", "Items", "Paragraph", "Span", "Table", "Text", "Title", "code", "listed", "plain", "text",
]  # fmt: skip

_PIECES = re.compile(r"(`[^`]*`|\*\*[^*]*\*\*)")
_FIELDS = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of text of one kind."""

    kind: Literal["plain", "code", "strong"]
    text: str


Text: TypeAlias = "tuple[Span, ...]"


@dataclass(frozen=True, slots=True)
class Title:
    """What the whole is called."""

    text: Text


@dataclass(frozen=True, slots=True)
class Heading:
    """What a section is called."""

    text: str


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Sentences."""

    text: Text


@dataclass(frozen=True, slots=True)
class Items:
    """A list."""

    items: tuple[Text, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under headings; columns of numbers are told by their cells."""

    headings: tuple[str, ...]
    rows: tuple[tuple[Text, ...], ...]

    def numeric(self, column: int) -> bool:
        """Whether a column holds numbers, which stand to the right."""
        cells = ("".join(span.text for span in row[column]) for row in self.rows)
        return all(re.fullmatch(r"[-\d.e+]*", cell) for cell in cells)


@dataclass(frozen=True, slots=True)
class Chart:
    """The plan drawn on a time line; ``words`` says what the bars are called."""

    words: Mapping[str, str]


Block: TypeAlias = "Title | Heading | Paragraph | Items | Table | Chart"


def plain(value: object) -> Text:
    """A value as it is."""
    return (Span("plain", str(value)),)


def code(value: str) -> Text:
    """A word from a file."""
    return (Span("code", value),) if value else ()


def listed(words: list[str], most: int = 12) -> Text:
    """Words from a file, with commas; of many the first few."""
    spans: list[Span] = []
    for word in words[:most]:
        spans += [*([Span("plain", ", ")] if spans else []), Span("code", word)]
    return (*spans, Span("plain", ", ...")) if len(words) > most else tuple(spans)


def text(template: str, values: Mapping[str, object]) -> Text:
    """Fill a template in. Backticks and double asterisks mark its own words; what is filled in marks nothing."""
    spans: list[Span] = []
    for piece in filter(None, _PIECES.split(template)):
        if piece[0] == "`":
            spans.append(Span("code", _filled(piece[1:-1], values)))
        elif piece[:2] == "**":
            spans.append(Span("strong", _filled(piece[2:-2], values)))
        else:
            spans += _plain(piece, values)
    return tuple(spans)


def _filled(piece: str, values: Mapping[str, object]) -> str:
    return _FIELDS.sub(lambda match: str(values[match[1]]), piece)


def _plain(piece: str, values: Mapping[str, object]) -> list[Span]:
    spans: list[Span] = []
    for index, part in enumerate(_FIELDS.split(piece)):
        value = values[part] if index % 2 else part
        spans += list(value) if isinstance(value, tuple) else [Span("plain", str(value))] if value != "" else []
    return spans

"""Parameters out of a query: each is taken by its name and range, and what nobody took is refused."""

from __future__ import annotations

from urllib.parse import parse_qsl

from .words import nearest, shown

__all__ = ["BadParameter", "Query", "whole"]

MOST = 20  # parameters in a query
LONGEST = 200  # characters of a text; keys are kept


class BadParameter(ValueError):
    """A parameter that cannot be taken; the message is what to tell the caller.

    Args:
        name: Of the parameter.
        detail: What is wrong with it, and what it takes.
    """

    def __init__(self, name: str, detail: str) -> None:
        super().__init__(detail)
        self.name = name


def whole(name: str, text: str, least: int, most: int) -> int:
    """A whole number, in digits alone.

    Raises:
        BadParameter: It is none, or out of its range.
    """
    number = int(text) if text.isascii() and text.isdigit() and len(text) <= 12 else -1
    if not least <= number <= most:
        raise BadParameter(name, f"{name} is a whole number from {least} to {most}, not {shown(text)}")
    return number


class Query:
    """The parameters of one request.

    Args:
        text: What stands behind the question mark.

    Raises:
        BadParameter: A name is given twice, or there are too many.
    """

    def __init__(self, text: str) -> None:
        try:
            pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=MOST)
        except ValueError:
            raise BadParameter("", f"there are more than {MOST} parameters") from None
        self._left: dict[str, str] = {}
        self._taken: list[str] = []
        for name, value in pairs:
            if name in self._left:
                raise BadParameter(name, f"{shown(name)} is given twice")
            self._left[name] = value

    def whole(self, name: str, least: int, most: int, default: int | None = None) -> int:
        """A whole number; without ``default`` it has to be there.

        Raises:
            BadParameter: It is none, out of its range, or missing.
        """
        text = self._take(name)
        if text is not None:
            return whole(name, text, least, most)
        if default is None:
            raise BadParameter(name, f"{name} is missing: a whole number from {least} to {most}")
        return default

    def share(self, name: str) -> float | None:
        """A number from 0 to 1, ``None`` where it is not given.

        Raises:
            BadParameter: It is none, or out of its range.
        """
        text = self._take(name)
        if text is None:
            return None
        try:
            number = float(text)
        except ValueError:
            number = -1.0
        if not 0 <= number <= 1:
            raise BadParameter(name, f"{name} is a share from 0 to 1, as 0.3, not {shown(text)}")
        return number

    def text(self, name: str) -> str | None:
        """A text that may stand in a header, ``None`` where it is not given.

        Raises:
            BadParameter: It is empty, too long, or has other characters than printable ASCII.
        """
        text = self._take(name)
        if text is not None and not (0 < len(text) <= LONGEST and text.isascii() and text.isprintable()):
            raise BadParameter(name, f"{name} is 1 to {LONGEST} printable ASCII characters, not {shown(text)}")
        return text

    def done(self) -> None:
        """All that is known here was asked for.

        Raises:
            BadParameter: Something else is given.
        """
        for name in self._left:
            known = ", ".join(self._taken) or "none"
            raise BadParameter(name, f"unknown parameter {shown(name)}{nearest(name, self._taken)}; known: {known}")

    def _take(self, name: str) -> str | None:
        self._taken.append(name)
        return self._left.pop(name, None)

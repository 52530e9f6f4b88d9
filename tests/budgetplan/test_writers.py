"""Names from files stay names, in Markdown and in HTML; the page needs nothing but itself."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from seawall.budgetplan.blocks import Span, Table, code, plain
from seawall.budgetplan.markdown import _code, _text
from seawall.budgetplan.page import _text as page_text
from tests.budgetplan.plans import GOOD, changed
from tests.budgetplan.reports import PROBE, written

pytestmark = pytest.mark.req("BUDGET-9")

NASTY = ["<script>alert(1)</script>", "a|b\\|c", "`x` ``y``", '"><img src=x onerror=alert(1)>', "**bold** _it_ [l](http://x)",
         "</title></style>&amp;"]  # fmt: skip
VOID = {"meta", "rect", "br", "img", "link"}


class Checker(HTMLParser):
    """Notes each tag with its attributes, and fails where one is closed that is not open."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def parsed(text: str) -> Checker:
    checker = Checker()
    checker.feed(text)
    checker.close()
    assert checker.open == []
    return checker


def nasty(index: int) -> tuple[dict[str, object], dict[str, object]]:
    row = {"kind": "refused", "target": NASTY[index], "elapsed_ms": 1, "error": NASTY[index]}
    plan = changed(calls_0_name=NASTY[index], calls_2_name=NASTY[index - 1], calls_2_max_attempts=3, name=NASTY[index])
    return plan, {"probes": [row, *PROBE["probes"]], NASTY[index]: 5}


@pytest.mark.parametrize("lang", ["en", "ko"])
def test_the_page_loads_nothing_runs_nothing_and_is_well_formed(lang: str) -> None:
    text = written(GOOD, lang=lang, html=True)
    page = parsed(text)
    names = {tag for tag, _ in page.tags}
    assert names & {"script", "link", "img", "iframe", "object", "embed", "a", "form", "base", "image", "use"} == set()
    attributes = {name for _, attrs in page.tags for name in attrs}
    assert [name for name in attributes if name.startswith("on") or name in ("src", "href", "style", "xlink:href")] == []
    assert "http:" not in text
    assert "https:" not in text
    assert re.findall(r"url\(|@import|expression\(", text) == []
    assert ("html", {"lang": lang}) in page.tags
    policy = next(attrs["content"] for _, attrs in page.tags if attrs.get("http-equiv") == "Content-Security-Policy")
    assert policy == "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    assert "prefers-color-scheme: dark" in text


@pytest.mark.parametrize("index", range(len(NASTY)))
def test_a_name_that_looks_like_html_is_shown_as_it_is(index: int) -> None:
    page = parsed(written(*nasty(index), html=True))
    assert {tag for tag, _ in page.tags} == {tag for tag, _ in parsed(written(GOOD, html=True)).tags}
    assert page.text.count(NASTY[index]) >= 6


@pytest.mark.parametrize("index", range(len(NASTY)))
def test_a_name_that_looks_like_markdown_is_shown_as_it_is(index: int) -> None:
    told = written(*nasty(index))
    for table in re.findall(r"(?:^\|.*\n)+", told, re.MULTILINE):
        cells = {len(re.split(r"(?<!\\)\|", line)) for line in table.splitlines()}
        assert len(cells) == 1
    without_code = re.sub(r"(?s)```text.*?```|(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)", "", told)
    assert NASTY[index] not in without_code
    assert "<" not in without_code


def test_the_bars_lie_where_the_plan_says() -> None:
    text = written(GOOD, html=True)
    bars = dict(re.findall(r"<title>(.*?): (?:.*?)</title>(.*?)</svg>", text))
    assert list(bars) == ["login", "price", "stock", "reserve", "left over"]
    drawn = re.findall(r'<rect class="(\w+)" x="([\d.]+)" y="1" width="([\d.]+)"', bars["login"])
    assert drawn == [("attempt", "0", "245"), ("wait", "250", "95"), ("attempt", "350", "245")]
    assert text.count('viewBox="0 0 3000 10"') == 5


def test_a_plan_that_leaves_nothing_over_draws_nothing_over() -> None:
    text = written(changed(total_ms=2850), html=True)
    assert "left over</span>" not in text
    assert 'class="spare"' not in text


@pytest.mark.parametrize(("word", "written"), [
    ("a", "`a`"), ("a`b", "``a`b``"), ("`", "`` ` ``"), ("a``", "``` a`` ```"), (" a ", "`  a  `"), ("  ", "`  `"),
])  # fmt: skip
def test_code_is_fenced_by_more_backticks_than_it_holds(word: str, written: str) -> None:
    assert _code(word) == written


def test_our_own_text_is_escaped_where_a_file_has_put_something_in() -> None:
    assert _text((Span("plain", "a*b <c> [d] x_y _z #1"),)) == r"a\*b \<c\> \[d\] x_y \_z \#1"


def test_a_column_is_numeric_if_all_its_cells_are() -> None:
    table = Table(("a", "b"), ((plain(1.5), code("1")), (plain(20), code("x"))))
    assert [table.numeric(0), table.numeric(1)] == [True, False]


def test_whatever_kind_of_text_it_is_the_page_escapes_it() -> None:
    assert page_text((Span("plain", "<b> &"), Span("strong", "<i>"), Span("code", '"'))) == (
        "&lt;b&gt; &amp;<strong>&lt;i&gt;</strong><code>&quot;</code>")

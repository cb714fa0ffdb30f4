"""The page of a model in a real browser: no complaint, no request, reachable by keyboard, readable in the dark."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from browser import Browser, browser
from model_pages import hostile_subject, sample_subject
from ortrim.analysis.page import model_page

pytestmark = pytest.mark.needs("chromium")
TAB, ENTER = ("Tab", 9), ("Enter", 13, "\r")
CONTRAST = """(() => {
  const light = (color) => {
    const [r, g, b] = color.match(/[\\d.]+/g).slice(0, 3).map((each) => each / 255)
      .map((each) => each <= 0.03928 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    for (let each = element; each; each = each.parentElement) {
      const color = getComputedStyle(each).backgroundColor;
      if (color !== "rgba(0, 0, 0, 0)") return color;
    }
    return "rgb(255, 255, 255)";
  };
  const texts = [...document.querySelectorAll("h1, h2, h3, p, td, th, li, summary, a, b, .small, .soft")];
  return Math.min(...texts.map((each) => {
    const [a, b] = [light(getComputedStyle(each).color), light(behind(each))];
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  }));
})()"""
"""The least contrast of any text with what lies behind it, as WCAG reckons it."""


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("profile")) as page:
        yield page


@pytest.fixture
def page(tmp_path: Path, opened: Browser) -> Browser:
    path = tmp_path / "model.html"
    path.write_text(model_page(sample_subject()))
    opened.width(1100)
    opened.open(path)
    return opened


def test_the_browser_has_nothing_to_complain_of(page: Browser) -> None:
    """No error, no word on the console, and no request but that for the page itself."""
    assert page.complaints() == []
    assert len(page.requests()) == 1


def test_hostile_names_do_nothing(tmp_path: Path, opened: Browser) -> None:
    """No script runs or is even there, and the policy had nothing to refuse."""
    path = tmp_path / "hostile.html"
    path.write_text(model_page(hostile_subject()))
    opened.open(path)
    assert opened.complaints() == []
    assert opened.value("document.scripts.length") == 0
    assert opened.value("document.title").startswith("<script>alert('1')</script>")


def test_the_keyboard_reaches_everything(page: Browser) -> None:
    """First the way past the head, then each link and each summary; what has the focus shows it; Enter opens."""
    page.press(*TAB)
    assert page.value("document.activeElement.className") == "skip"
    assert page.value("document.activeElement.getBoundingClientRect().top") >= 0
    wanted = page.value("document.querySelectorAll('a, summary').length")
    for _ in range(3 * wanted):
        focused = "document.activeElement"
        if page.value(f"{focused}.matches('a, summary')"):
            assert page.value(f"getComputedStyle({focused}).outlineStyle") == "solid"
            page.value(f"{focused}.dataset.seen = 1")
        page.press(*TAB)
    assert page.value("document.querySelectorAll('[data-seen]').length") == wanted
    page.value("document.querySelector('#cost summary').focus()")
    page.press(*ENTER)
    assert page.value("document.querySelector('#cost details').open")


def test_the_skip_link_leads_past_the_head(page: Browser) -> None:
    """The focus then lies behind the navigation."""
    page.press(*TAB)
    page.press(*ENTER)
    page.press(*TAB)
    assert page.value("document.activeElement.closest('section').id") == "graph"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_can_be_read_in_both_schemes(page: Browser, scheme: str) -> None:
    page.scheme(scheme)
    assert page.value(CONTRAST) >= 4.5
    red = page.value("Number(getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0])")
    assert (red < 128) == (scheme == "dark")


def test_a_phone_shows_it_without_scrolling_sideways(page: Browser) -> None:
    """Wide tables scroll within themselves."""
    page.width(360)
    assert page.value("document.documentElement.scrollWidth") <= 360

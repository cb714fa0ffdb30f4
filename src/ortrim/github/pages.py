"""Lists that come in pages."""

from collections.abc import Callable
from typing import Final, TypeVar

from requests.utils import parse_header_links

from ortrim.github.client import GitHub
from ortrim.github.records import parsed
from ortrim.github.refusals import unexpected
from ortrim.github.wire import Answer

P = TypeVar("P")
T = TypeVar("T")

PAGE_SIZE: Final = "100"
MOST_PAGES: Final = 100


def everything(
    client: GitHub, path: str, page: type[P], members: Callable[[P], tuple[T, ...]], **parameters: str
) -> tuple[T, ...]:
    """Return the members of all pages of a list, by following the links that the service gives.

    Raises `NetworkError` as `GitHub.get` does, and `github-unexpected-answer` for a list without an end.
    """
    found: list[T] = []
    answer = client.get(path, per_page=PAGE_SIZE, **parameters)
    for _ in range(MOST_PAGES):
        found.extend(members(parsed(page, answer, path)))
        following = next_page(answer)
        if not following:
            return tuple(found)
        answer = client.get(following)
    raise unexpected(path, f"a list of more than {MOST_PAGES} pages")


def next_page(answer: Answer) -> str:
    """Return the address of the page after this one, empty for the last."""
    links = parse_header_links(answer.headers.get("link", ""))
    return next((str(link["url"]) for link in links if link.get("rel") == "next"), "")

"""Pages of a list: how a reader asks for one, and what it is given."""

from collections.abc import Callable, Sequence
from typing import Annotated, Generic, TypeVar

import msgspec

from wakeful.doors.http.endpoint import Given
from wakeful.vocabulary.record import Record

DEFAULT_PAGE = 50
LARGEST_PAGE = 500

Item = TypeVar("Item")
Found = TypeVar("Found")
Limit = Annotated[int, msgspec.Meta(ge=1, le=LARGEST_PAGE)]
Cursor = Annotated[str, msgspec.Meta(min_length=1, max_length=1200)]


class PageQuery(Given):
    """Which page; `after` is the `next` of the page before."""

    after: Cursor | None = None
    limit: Limit = DEFAULT_PAGE


class Page(Record, Generic[Item]):
    """One page of a list; `next` is the cursor of the page that follows, or null."""

    items: Sequence[Item]
    next: str | None


def paged(
    found: Sequence[Found],
    limit: int,
    shape: Callable[[Found], Item],
    place: Callable[[Found], str],
    *,
    is_full: bool = False,
) -> Page[Item]:
    """Return the first of what was found; one more than the limit says that others follow.

    They follow as well where a page is full before that.
    """
    shown = found[:limit]
    has_more = is_full or len(found) > limit
    return Page(items=[shape(one) for one in shown], next=place(shown[-1]) if has_more else None)

"""The table: every row, found by its path; guard, router and connections ask nobody else."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import unquote, unquote_to_bytes

from starlette.responses import Response
from starlette.types import Scope

from wakeful.doors.http.endpoint import ANY_METHOD, SOCKET, BodyRule, Row
from wakeful.doors.http.headers import add_defaults
from wakeful.doors.http.problems import ErrorForm, Problem

PLAIN_BODY = BodyRule()

_PLACE = "wakeful.place"  # in a scope: where in the table its path leads
_NO_FORMS: Mapping[str, ErrorForm] = {}


@dataclass(slots=True)
class _Branch:
    """The rows whose paths begin alike."""

    words: dict[str, "_Branch"] = field(default_factory=dict[str, "_Branch"])
    any: "_Branch | None" = None
    name: str = ""  # of the parameter that led here
    methods: dict[str, "_Leaf"] = field(default_factory=dict[str, "_Leaf"])
    below: "_Leaf | None" = None  # what answers everything from here on


@dataclass(frozen=True, slots=True)
class _Leaf:
    row: Row
    body: BodyRule


@dataclass(slots=True)  # not frozen: one is made for each request
class RowMatch:
    """Where in the table a request leads; without a row, nowhere."""

    row: Row | None
    body: BodyRule
    path: Mapping[str, str]
    methods: Sequence[str] = ()  # that the path has instead
    words: int = 0  # of the path, that lead to a row which answers everything below it


class Table:
    """The rows; what is not among them answers 404.

    Paths are split before they are decoded, so that no %2F can move a border.
    """

    def __init__(
        self, rows: Sequence[Row], error_forms: Mapping[str, ErrorForm] = _NO_FORMS
    ) -> None:
        self._rows = tuple(rows)
        self._root = _Branch()
        for row in rows:
            self._add(row)
        self._forms = sorted(error_forms.items(), key=lambda form: -len(form[0]))

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows)

    @property
    def has_sockets(self) -> bool:
        return any(row.method == SOCKET for row in self._rows)

    def is_socket(self, raw_path: bytes) -> bool:
        branch, _ = self._walk(raw_path)
        return branch is not None and SOCKET in branch.methods

    def find(self, scope: Scope) -> RowMatch:
        """Return where a request leads, and put it into the scope for whoever comes after."""
        method = scope["method"] if scope["type"] == "http" else SOCKET
        branch, path = self._walk(scope["raw_path"])
        if branch is not None and (leaf := branch.methods.get(method)) is not None:
            place = RowMatch(leaf.row, leaf.body, path)
        else:
            place = self._elsewhere(scope["raw_path"], method, branch)
        scope[_PLACE] = place
        return place

    def refusal(self, raw_path: bytes, problem: Problem) -> Response:
        """Return how a problem is told below a path, which need not be one of ours."""
        path = unquote(raw_path.decode("latin-1"))
        write: ErrorForm = Problem.response
        for prefix, form in self._forms:
            if path == prefix or path.startswith(f"{prefix}/"):
                write = form
                break
        response = write(problem)
        for name, value in problem.headers.items():
            response.headers[name] = value
        add_defaults(response.raw_headers)
        return response

    def _add(self, row: Row) -> None:
        branch = self._root
        for word in row.path.strip("/").split("/"):
            if word.startswith("{"):
                branch.any = branch.any or _Branch(name=word.strip("{}"))
                branch = branch.any
                if word != f"{{{branch.name}}}":
                    raise ValueError(f"{word} of {row.path} has the name {branch.name} elsewhere")
            else:
                branch = branch.words.setdefault(word, _Branch())
        if row.method in branch.methods or (row.method == ANY_METHOD and branch.below):
            raise ValueError(f"two rows answer {row.method} {row.path}")
        leaf = _Leaf(row, row.body_rule())
        if row.method == ANY_METHOD:
            branch.below = leaf
        else:
            branch.methods[row.method] = leaf

    def _elsewhere(self, raw_path: bytes, method: str, branch: _Branch | None) -> RowMatch:
        """Return where a path leads that has no row of its own for a method."""
        passed: list[_Branch] = []
        path = self._walk(raw_path, passed)[1]
        if branch is not None and branch.methods:
            leaf = branch.methods.get("GET") if method == "HEAD" else None
            if leaf is None or leaf.row.streams:
                return RowMatch(None, PLAIN_BODY, path, methods=tuple(branch.methods))
            return RowMatch(leaf.row, leaf.body, path)
        for words in range(len(passed), 0, -1):
            leaf = passed[words - 1].below
            if leaf is not None:
                return RowMatch(leaf.row, leaf.body, path, words=words)
        return RowMatch(None, PLAIN_BODY, path)

    def _walk(
        self, raw_path: bytes, passed: list[_Branch] | None = None
    ) -> tuple[_Branch | None, dict[str, str]]:
        """Follow a path, noting what it passes if somebody wants to know."""
        branch = self._root
        path: dict[str, str] = {}
        if not raw_path.startswith(b"/"):
            return None, path
        for raw in raw_path[1:].split(b"/"):
            try:
                word = (unquote_to_bytes(raw) if b"%" in raw else raw).decode()
            except UnicodeDecodeError:
                return None, path
            if (known := branch.words.get(word)) is not None:
                branch = known
            elif branch.any is not None and word:
                branch = branch.any
                path[branch.name] = word
            else:
                return None, path
            if passed is not None:
                passed.append(branch)
        return branch, path


def place_of(scope: Scope) -> RowMatch:
    """Return what the guard found out about a request."""
    return scope[_PLACE]

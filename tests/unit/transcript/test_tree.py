"""The tree of a file, and the names of its lines, in a few bytes each."""

from hypothesis import given
from hypothesis import strategies as st

from wakeful.transcript.jsonl.numbers import Numbers
from wakeful.transcript.jsonl.tree import Tree


@given(st.lists(st.none() | st.integers(0, 30), min_size=1, max_size=30))
def test_a_path_through_branches_is_the_path_through_parents(given_parents: list[int | None]):
    tree, parents = Tree(), list[int | None]()
    for number, above in enumerate(given_parents):
        parent = None if above is None or number == 0 else above % number
        parents.append(parent)
        assert tree.add(parent) == number

    for line, parent in enumerate(parents):
        above = {line}
        while parent is not None:
            above.add(parent)
            parent = parents[parent]
        assert {one for one in range(len(parents)) if tree.is_above(one, line)} == above
        assert tree.depth_of[line] == len(above) - 1


def test_no_two_lines_of_a_branch_are_equally_deep():
    tree = Tree()
    for parent in (None, 0, 1, 1, 0, 3, None, 6):
        tree.add(parent)

    places = list(zip(tree.branch_of, tree.depth_of, strict=True))
    assert len(set(places)) == len(places)
    assert [tree.fork(branch) for branch in range(tree.branches)] == [
        (-1, -1),
        (0, 1),
        (0, 0),
        (0, -1),
    ]


@given(st.lists(st.text(max_size=8), max_size=50))
def test_names_are_numbered_once(names: list[str]):
    numbers, known = Numbers(), dict[str, int]()
    for number, name in enumerate(names):
        assert numbers.add(name, number) == (name not in known)
        known.setdefault(name, number)

    assert len(numbers) == len(known)
    assert all(numbers.get(name) == number for name, number in known.items())
    assert numbers.get("somebody else") is None


def test_many_names_fit():
    numbers = Numbers()
    for number in range(20_000):
        numbers.add(f"{number:08x}", number)

    assert all(numbers.get(f"{number:08x}") == number for number in range(20_000))

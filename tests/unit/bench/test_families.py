import pytest

from bench.families import FAMILIES, find


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_a_figure_is_found_by_its_name_or_that_of_its_family(family: object) -> None:
    name = getattr(family, "name", "")

    assert find(name) is family
    assert find(f"{name}.p99") is family


def test_an_unknown_name_finds_nothing() -> None:
    assert find("nothing") is None

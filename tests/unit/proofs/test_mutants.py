"""Every mutant patches something that is there."""

import re
from pathlib import Path

import pytest

from tests.proofs import mutants
from tests.proofs.patching import original, patch

FOLDER = Path(mutants.__file__).parent
TARGETS = sorted(
    {
        target
        for file in FOLDER.glob("mutants*.py")
        for target in re.findall(r'"(wakeful\.[\w.]+:[\w.]+)"', file.read_text(encoding="utf-8"))
    }
)


def test_mutants_name_what_they_patch() -> None:
    assert len(TARGETS) > 25


@pytest.mark.parametrize("target", TARGETS)
def test_what_a_mutant_patches_exists(target: str) -> None:
    assert original(target) is not None


def test_a_mutant_of_something_that_is_gone_fails_loudly() -> None:
    with pytest.raises(LookupError, match="breaks nothing"):
        patch("wakeful.bus.bus:Bus.no_such_thing", None)
    with pytest.raises(LookupError, match="breaks nothing"):
        patch("wakeful.no_such_room:thing", None)

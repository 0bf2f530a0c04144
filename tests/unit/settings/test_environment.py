"""The file `environment`: read by everybody, refused when others could read it too."""

from pathlib import Path

import pytest

from wakeful.settings import environment
from wakeful.settings.problems import BadSettings


def written(home: Path, text: str, mode: int = 0o600) -> Path:
    file = home / "environment"
    file.write_text(text)
    file.chmod(mode)
    return home


def test_lines_are_read_as_shells_and_units_write_them(tmp_path: Path):
    text = """
# keys
OPENAI_API_KEY=sk-1
export  OTHER = plain words # a remark
QUOTED="with \\"quotes\\" and a # mark"   # a remark
SINGLE='$left \\alone'
EMPTY=
HASH=a#b
"""

    found = environment.read(written(tmp_path, text))

    assert found == {
        "OPENAI_API_KEY": "sk-1",
        "OTHER": "plain words",
        "QUOTED": 'with "quotes" and a # mark',
        "SINGLE": "$left \\alone",
        "EMPTY": "",
        "HASH": "a#b",
    }


def test_what_the_process_was_given_counts_more(tmp_path: Path):
    written(tmp_path, "A=file\nB=file\n")

    assert environment.with_file(tmp_path, {"A": "given"}) == {"A": "given", "B": "file"}


def test_no_file_is_no_variables(tmp_path: Path):
    assert environment.read(tmp_path) == {}
    assert environment.read(tmp_path / "no home") == {}


@pytest.mark.parametrize(("mode", "told"), [(0o640, "others can read"), (0o602, "can change")])
def test_a_file_that_is_open_to_others_is_refused(tmp_path: Path, mode: int, told: str):
    written(tmp_path, "A=secret\n", mode)

    with pytest.raises(BadSettings, match=told) as refused:
        environment.read(tmp_path)

    assert "chmod 600" in str(refused.value)
    assert "secret" not in str(refused.value)


def test_a_line_that_means_nothing_is_told_by_its_number_alone(tmp_path: Path):
    written(tmp_path, "A=1\nsk-secret without a name\n")

    with pytest.raises(BadSettings) as refused:
        environment.read(tmp_path)

    assert str(refused.value) == f"{tmp_path}/environment:2: must be NAME=value"


def test_a_folder_in_its_place_is_told(tmp_path: Path):
    (tmp_path / "environment").mkdir()

    with pytest.raises(BadSettings, match="cannot be read"):
        environment.read(tmp_path)

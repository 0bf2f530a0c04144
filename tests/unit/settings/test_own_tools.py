"""Tools of one's own come from files and modules, and what is wrong with one is told by line."""

from pathlib import Path

import pytest

from wakeful.settings.load import Loaded, load_text, reload
from wakeful.settings.problems import BadSettings
from wakeful.settings.purpose import SettingsPurpose

PRICE = '''
import wakeful


@wakeful.tool(effect="read")
def price(article: str) -> int:
    """Return what an article costs."""
    return {"tea": 3}[article]
'''


def loaded(folder: Path, text: str, purpose: SettingsPurpose = SettingsPurpose.SERVE) -> Loaded:
    file = folder / "wakeful.yaml"
    file.write_text(text)
    return load_text(text, file, {"WAKEFUL_HOME": str(folder / "home")}, purpose)


def refused(folder: Path, text: str) -> str:
    with pytest.raises(BadSettings) as caught:
        loaded(folder, text)
    return str(caught.value)


def test_an_agent_has_the_tools_of_a_file_beside_the_built_in_ones(tmp_path: Path):
    (tmp_path / "shop.py").write_text(PRICE)

    (agent,) = loaded(tmp_path, "tools_from: [shop.py]\n").agents

    assert [tool.name for tool in agent.tools] == ["price"]
    assert agent.has_default_tools


def test_an_agent_that_names_its_tools_has_those_it_names(tmp_path: Path):
    (tmp_path / "shop.py").write_text(PRICE)
    text = "tools_from: [shop.py]\nagents: {main: {tools: [price]}, scout: {tools: [read_file]}}\n"

    main, scout = loaded(tmp_path, text).agents

    assert [tool.name for tool in main.tools] == ["price"]
    assert [tool.name for tool in scout.tools] == ["read_file"]


def test_a_module_beside_the_settings_is_found_by_its_name(tmp_path: Path):
    (tmp_path / "shop_of_tests.py").write_text(PRICE)

    (agent,) = loaded(tmp_path, "tools_from: [shop_of_tests]\n").agents

    assert [tool.name for tool in agent.tools] == ["price"]


def test_a_changed_file_is_read_again(tmp_path: Path):
    (tmp_path / "shop.py").write_text(PRICE)
    before = loaded(tmp_path, "tools_from: [shop.py]\n")
    (tmp_path / "shop.py").write_text(PRICE.replace("price", "prize"))

    after, outcome = reload(before, {"WAKEFUL_HOME": str(tmp_path / "home")})

    assert outcome.changed == ("tools_from",)
    assert list(after.own_tools.tools) == ["prize"]


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("def broken(:\n", "{file}:1: invalid syntax"),
        ("import wakeful\n\n1 / 0\n", "{file}:3: ZeroDivisionError: division by zero"),
        (PRICE.replace('"read"', '"reed"'), "{file}:5: InvalidInput: effect: must be one of read"),
        ("raise SystemExit(3)\n", "{file}:1: SystemExit: 3"),
        ("x = 1\n", "defines no tool; mark functions with @wakeful.tool"),
    ],
)
def test_what_is_wrong_with_a_file_is_told_with_its_line(tmp_path: Path, code: str, told: str):
    file = tmp_path / "shop.py"
    file.write_text(code)

    said = refused(tmp_path, "timezone: UTC\ntools_from:\n  - shop.py\n")

    assert said.startswith(f"{tmp_path}/wakeful.yaml:3: tools_from[0]: ")
    assert told.format(file=file) in said


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("tools_from: [none.py]", "none.py cannot be read: No such file or directory"),
        ("tools_from: [no_such_module]", "No module named 'no_such_module'"),
        ("tools_from: ['a b']", "must be a Python file or the name of a module, not 'a b'"),
        ("agents: {main: {tools: [price]}}", "agents.main.tools[0]: must be one of"),
    ],
)
def test_what_is_not_there_is_told(tmp_path: Path, text: str, told: str):
    assert told in refused(tmp_path, text)


def test_no_tool_takes_the_name_of_another(tmp_path: Path):
    (tmp_path / "one.py").write_text(PRICE)
    (tmp_path / "two.py").write_text(PRICE.replace("price", "read_file"))

    said = refused(tmp_path, "tools_from: [one.py, one.py, two.py]\n")

    assert "defines the tool 'price', which is there already" in said
    assert "the tool 'read_file' must have another name" in said


def test_a_verb_that_only_looks_runs_no_code_of_yours(tmp_path: Path):
    (tmp_path / "shop.py").write_text("raise SystemExit(3)\n")
    text = "tools_from: [shop.py]\nagents: {main: {tools: [price]}}\n"

    assert loaded(tmp_path, text, SettingsPurpose.LOOK).agents[0].tools == ()

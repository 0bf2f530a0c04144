"""The schema and the reference page say what the loader does."""

import re
from pathlib import Path

from wakeful.settings.keys import KEYS
from wakeful.settings.schema import json_schema, reference, rows

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "settings.md"


def test_the_reference_page_is_up_to_date():
    assert PAGE.read_text(encoding="utf-8") == reference(), "run `make docs`"


def test_every_key_is_described_and_every_description_has_its_key():
    described = [row.key for row in rows(json_schema(), "")]

    assert sorted(described) == sorted(KEYS)
    assert len(set(described)) == len(described)


def test_every_description_is_one_sentence():
    assert [key for key, row in KEYS.items() if not re.fullmatch(r"\S[^|]*\.", row.means)] == []


def test_the_schema_refuses_what_the_loader_refuses():
    schema = json_schema()

    assert schema["additionalProperties"] is False
    port = schema["properties"]["server"]["properties"]["port"]
    assert (port["type"], port["minimum"], port["maximum"]) == ("integer", 0, 65_535)
    agent = schema["properties"]["agents"]["additionalProperties"]
    assert agent["additionalProperties"] is False
    assert agent["properties"]["model"]["default"] == "demo"

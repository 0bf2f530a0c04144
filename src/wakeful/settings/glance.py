"""A glance at the settings file: one key of it, whatever the rest says."""

from pathlib import Path

import yaml

from wakeful.settings import text
from wakeful.settings.problems import BadSettings


def timezone_in(file: Path) -> str | None:
    """Return the zone that a file names, None if it names none or cannot be read."""
    try:
        root = text.parsed(file.read_text(encoding="utf-8-sig"), str(file))
    except (OSError, UnicodeDecodeError, BadSettings):
        return None
    if not isinstance(root, yaml.MappingNode):
        return None
    for key, value in root.value:
        is_it = isinstance(key, yaml.ScalarNode) and key.value == "timezone"
        if is_it and isinstance(value, yaml.ScalarNode) and value.tag == text.TEXT:
            return value.value or None
    return None

"""Why the settings are read: how much must be there depends on it."""

from enum import IntEnum


class SettingsPurpose(IntEnum):
    """Each asks for more than the one before it."""

    LOOK = 1  # a verb that only wants to know where things are
    CHECK = 2  # is it well written? Tools of one's own are loaded; keys may be elsewhere
    SERVE = 3  # everything must be there: keys, secrets, packages

    @property
    def needs_secrets(self) -> bool:
        return self is SettingsPurpose.SERVE

    @property
    def loads_tools(self) -> bool:
        return self >= SettingsPurpose.CHECK

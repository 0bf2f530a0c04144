"""What is wrong with a settings file: where, which key, which rule."""

from collections.abc import Sequence

from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.record import Record


class SettingsProblem(Record):
    """One thing to change."""

    place: str  # the file, or the variable of the environment
    line: int | None = None  # from 1 on
    key: str = ""
    rule: str

    def __str__(self) -> str:
        where = self.place if self.line is None else f"{self.place}:{self.line}"
        return f"{where}: {self.key}: {self.rule}" if self.key else f"{where}: {self.rule}"


class BadSettings(InvalidInput):
    """The settings cannot be used; every problem that was found is named."""

    def __init__(self, problems: Sequence[SettingsProblem]) -> None:
        first = problems[0]
        super().__init__(first.key or first.place, first.rule)
        self.problems = tuple(problems)

    def __str__(self) -> str:
        return "\n".join(map(str, self.problems))

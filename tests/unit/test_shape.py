"""The shape of the code: nothing is there for nobody, and nothing is split below an idea."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator

from tests.sources import SOURCE, texts, trees

SMALL = 40  # lines; below it, a file that one other imports belongs to that one
# Small, imported by one, and an idea of their own all the same.
ALONE = {
    "assembly/gate.py": "the gate as tests of two nodes build it, too",
    "assembly/hooks.py": "what features hang on: each that comes adds its own",
    "models/unusable.py": "a model, as every other module of its kind",
    "prompts/system.py": "the words that every agent is told first",
    "tools/ask_human.py": "a tool, as every other module of its kind",
    "tools/shell.py": "a tool, as every other module of its kind",
    "tools/sleep.py": "a tool, as every other module of its kind",
}
# Named by nobody of ours, and there all the same.
UNNAMED = {
    "accept_with": "rows beside a stimulus, for the doors to come: tasks, hashes of webhooks",
    "tell": "for programs that embed a runtime",
    "add_automation": "for programs that embed a runtime",
    "edit_automation": "for programs that embed a runtime",
    "pause_automation": "for programs that embed a runtime",
    "resume_automation": "for programs that embed a runtime",
    "remove_automation": "for programs that embed a runtime",
    "run_automation": "for programs that embed a runtime",
    "automation_run": "for programs that embed a runtime",
    "import_automations": "for programs that embed a runtime",
    "automation_runs": "for programs that embed a runtime",
    "set_heartbeat": "for programs that embed a runtime",
    "raise_budget": "for programs that embed a runtime",
    "set_quiet": "for programs that embed a runtime",
    "see_activity": "for programs that embed a runtime",
    "import_transcript": "for programs that embed a runtime",
    "receive_webhook": "for programs that embed a runtime",
    "test_hook": "for programs that embed a runtime",
    "owner_kind": "a column that statements read",
    "_unsupported_upgrade_warning": "called by uvicorn",
    "send_400_response": "called by uvicorn",
    "formatTime": "called by logging",
    "spool_max_size": "read by the reader of forms",
}
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def defined(tree: ast.Module) -> Iterator[str]:
    """Yield what a module defines: functions, methods, classes, fields and constants."""
    for node in ast.walk(tree):
        if isinstance(node, Definition) and not _is_registered(node):
            yield node.name
        if isinstance(node, ast.ClassDef | ast.Module):
            for line in node.body:
                yield from assigned(line)


def assigned(line: ast.stmt) -> Iterator[str]:
    match line:
        case ast.AnnAssign(target=ast.Name(id=name)):
            yield name
        case ast.Assign(targets=targets):
            yield from (target.id for target in targets if isinstance(target, ast.Name))
        case _:
            pass


def _is_registered(node: Definition) -> bool:
    """Tell whether a decorator hands a function to somebody."""
    found = (ast.unparse(decorator) for decorator in node.decorator_list)
    return any(not name.startswith(("property", "cached", "dataclass")) for name in found)


def used(tree: ast.Module) -> Iterator[str]:
    """Yield what a module names; a whole text may name a verb, or a column."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Load()) | ast.Attribute(attr=name, ctx=ast.Load()):
                yield name
            case ast.keyword(arg=str(name)) | ast.alias(name=name):
                yield name
            case ast.MatchClass(kwd_attrs=names):
                yield from names
            case ast.Constant(value=str(text)) if re.fullmatch(r"[\w.:]+", text):
                yield from re.split(r"[.:]", text)
            case _:
                pass


def test_nothing_is_there_for_nobody():
    there = {name for tree in trees(SOURCE).values() for name in defined(tree)}
    wanted = {name for tree in trees(SOURCE).values() for name in used(tree)}

    unused = {name for name in there - wanted - _members_of_enums() if not name.startswith("__")}

    assert unused - UNNAMED.keys() == set()


def _members_of_enums() -> set[str]:
    """Return the words of closed sets: each may come from a file, a wire or a row."""
    return {
        name
        for tree in trees(SOURCE).values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and any("Enum" in ast.unparse(b) for b in node.bases)
        for line in node.body
        for name in assigned(line)
    }


def importers() -> dict[str, set[str]]:
    """Return, by its file, who imports a module."""
    known = {name.removesuffix(".py").replace("/", "."): name for name in trees(SOURCE)}
    found: defaultdict[str, set[str]] = defaultdict(set)
    for user, tree in trees(SOURCE).items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("wakeful"):
                module = (node.module or "").removeprefix("wakeful").lstrip(".")
                names = [module, *(f"{module}.{alias.name}".lstrip(".") for alias in node.names)]
                for file in (known[name] for name in names if name in known):
                    found[file].add(user)
    return found


def test_no_file_is_smaller_than_an_idea():
    small = {
        file
        for file, users in importers().items()
        if len(users) == 1 and len(texts(SOURCE)[file].splitlines()) < SMALL
    }

    assert small - ALONE.keys() == set()

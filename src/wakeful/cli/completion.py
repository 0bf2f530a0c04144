"""`completion`: what a shell needs to complete the words of this command."""

import subprocess
import sys
from enum import StrEnum
from typing import Annotated

import typer

from wakeful.cli.context import CliContext
from wakeful.cli.exits import CommandFailed


class Shell(StrEnum):
    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


ShellName = Annotated[Shell, typer.Argument(help="bash, zsh or fish.")]


def completion(context: CliContext, shell: ShellName = Shell.BASH) -> None:
    """Print the completion script of a shell, to be sourced or installed by you."""
    answer = subprocess.run(
        [sys.executable, "-m", "wakeful"],
        env={**context.environ, "_WAKEFUL_COMPLETE": f"source_{shell}"},
        capture_output=True,
        text=True,
        check=False,
    )
    if answer.returncode or not answer.stdout:
        raise CommandFailed(f"no completion script for {shell}")
    context.out.line(answer.stdout.rstrip())

"""Where everything lies: the home folder, and the names of the files in it."""

from collections.abc import Mapping
from pathlib import Path

DEFAULT_HOME = "~/.wakeful"
FILE_NAME = "wakeful.yaml"
DATABASE_NAME = "wakeful.db"


def home_of(environ: Mapping[str, str]) -> Path:
    """Return the home folder that the environment names, or the default one."""
    return Path(environ.get("WAKEFUL_HOME") or DEFAULT_HOME).expanduser().absolute()


def file_of(environ: Mapping[str, str]) -> Path:
    """Return where the settings file is, or would be."""
    named = environ.get("WAKEFUL_CONFIG")
    return Path(named).expanduser().absolute() if named else home_of(environ) / FILE_NAME

"""How a command ends: what each exit code means, and which error leads to which."""

from enum import IntEnum

from wakeful.vocabulary.errors import InvalidInput, NotFound, Transient, WakefulError


class ExitCode(IntEnum):
    OK = 0
    FAILURE = 1  # it was tried and did not work
    USAGE = 2  # the command, a value or the settings break a rule
    UNREACHABLE = 3  # no server answers
    NOT_FOUND = 4  # the thing named does not exist
    DENIED = 5  # the token is missing, wrong, or does not allow this
    BUSY = 6  # try again later
    STALLED = 7  # the server hung and its watchdog ended it: start it again
    INTERRUPTED = 130  # Ctrl-C


class CommandFailed(WakefulError):
    """The command failed."""

    code = ExitCode.FAILURE


class Unreachable(CommandFailed):
    """No server answers."""

    code = ExitCode.UNREACHABLE


class Missing(CommandFailed):
    """There is no such thing."""

    code = ExitCode.NOT_FOUND


class Denied(CommandFailed):
    """The server refused the token."""

    code = ExitCode.DENIED


class Busy(CommandFailed):
    """The server cannot take this now; try again later."""

    code = ExitCode.BUSY


class Misused(CommandFailed):
    """The command was used wrongly."""

    code = ExitCode.USAGE


def code_of(error: WakefulError) -> ExitCode:
    """Return the exit code that an error ends a command with."""
    match error:
        case CommandFailed():
            return error.code
        case NotFound():
            return ExitCode.NOT_FOUND
        case InvalidInput():
            return ExitCode.USAGE
        case Transient():
            return ExitCode.BUSY
        case _:
            return ExitCode.FAILURE

"""The tools that come with the runtime."""

from wakeful.tools.ask_human import ask_human
from wakeful.tools.attachments import ATTACHMENT_TOOLS
from wakeful.tools.check_inbox import check_inbox
from wakeful.tools.current_time import current_time
from wakeful.tools.files import FILE_TOOLS
from wakeful.tools.memory import MEMORY_TOOLS
from wakeful.tools.schedule import schedule
from wakeful.tools.send_message import send_message
from wakeful.tools.sessions import SESSION_TOOLS
from wakeful.tools.shell import shell
from wakeful.tools.sleep import sleep
from wakeful.tools.tool import Tool
from wakeful.tools.web import web_fetch


def default_tools() -> tuple[Tool, ...]:
    """Return the tools every agent has unless it is told otherwise."""
    return (
        current_time,
        *MEMORY_TOOLS,
        *FILE_TOOLS,
        *SESSION_TOOLS,
        *ATTACHMENT_TOOLS,
        check_inbox,
        send_message,
        sleep,
        schedule,
        ask_human,
    )


def optional_tools() -> tuple[Tool, ...]:
    """Return the tools that act with the runtime's own rights or speak to strangers.

    An agent must ask for them.
    """
    return (shell, web_fetch)

"""An MCP server that lies, hangs and shouts; what it does is told by its first argument, JSON."""

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

PLAN: dict[str, Any] = json.loads(sys.argv[1])


def say(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def answer(request: dict[str, Any]) -> None:
    id, method = request["id"], request["method"]
    if method == "initialize":
        version = request["params"]["protocolVersion"]
        info = {"name": "liar", "version": "1"}
        capabilities = {"tools": {"listChanged": True}}
        result = {"protocolVersion": version, "capabilities": capabilities, "serverInfo": info}
        say({"id": id, "result": result})
    elif method == "tools/list":
        # A number is a length: no argument could be so long.
        tools = [
            {**tool, "description": "d" * tool.get("description", 0)} for tool in PLAN["tools"]
        ]
        say({"id": id, "result": {"tools": tools}})
    elif method == "tools/call":
        act(id, request["params"]["name"])
    else:
        say({"id": id, "error": {"code": -32601, "message": "no such method"}})


def act(id: Any, name: str) -> None:
    text = {"content": [{"type": "text", "text": "fine"}]}
    if name in DEEDS:
        DEEDS[name]()
    elif name == "misaddress":
        say({"id": 4711, "result": text})
        say({"id": "4711", "error": {"code": 1, "message": "wrong"}})
        say({"id": id, "result": text})
    elif name == "mumble":
        sys.stdout.write("this is no message\n[1, 2]\n")
        say({"id": id, "result": {"content": "no list"}})
    elif name == "long":
        say({"id": id, "result": {"content": [{"type": "text", "text": "y" * 3_000_000}]}})
    elif name != "mark" or not is_first_mark():
        say({"id": id, "result": text})


def die() -> None:
    sys.stderr.write("I am broken\n")
    sys.stderr.flush()
    os._exit(3)


def shout() -> None:
    """Say one line without an end."""
    while True:
        sys.stdout.write("x" * 65536)


def nag() -> None:
    """Ask, and never listen."""
    while True:
        say({"id": 1, "method": "ping"})


def babble() -> None:
    while True:
        sys.stdout.write("no message\n")


def is_first_mark() -> bool:
    """Leave a line behind; only those after the first are answered."""
    with open(PLAN["file"], "a+") as file:
        file.write(f"{os.getpid()}\n")
        file.seek(0)
        return len(file.readlines()) == 1


DEEDS: dict[str, Callable[[], object]] = {
    "die": die,
    "shout": shout,
    "nag": nag,
    "babble": babble,
    "deaf": lambda: time.sleep(600),
}

if PLAN.get("words"):
    sys.stderr.write(PLAN["words"])
    sys.exit(1)
for _ in range(PLAN.get("flood", 0)):  # of the error stream, before anything is answered
    sys.stderr.write("z" * 65536)
sys.stdout.write(PLAN.get("greeting", "") + "\n")
sys.stdout.flush()
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message and "method" in message:
        answer(message)

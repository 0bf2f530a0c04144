"""Ports for children that must come back at the same address."""

import socket

_held: list[socket.socket] = []


def reserved_port() -> int:
    """Return a port that belongs to this process until it ends, also while its server is away.

    A socket here is bound to it and never listens. Whoever is given a port by chance, to listen or
    to connect from, is given another one; a child that asks for this very one may have it, since
    both say SO_REUSEADDR.
    """
    holder = socket.socket()
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind(("127.0.0.1", 0))
    _held.append(holder)
    return holder.getsockname()[1]

"""What a connection puts into the state of its requests, for those who answer them.

Apart from `connection`: whoever answers without one, such as a look at a database without a server,
loads nothing that listens.
"""

ABORT = "abort"  # cuts the connection, whatever it still had to send
GROW = "grow"  # of a WebSocket: sets the size of the largest message that is taken
WHOLE = "whole"  # the body has arrived, and is a small one

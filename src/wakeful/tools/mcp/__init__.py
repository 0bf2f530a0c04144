"""Tools of MCP servers: connections that are kept, and what the servers say, taken with care.

From: assembly, toolbox.
To: net, prompts, views; mcp (the library, loaded when the first server is connected to).
Never: believes a server about what its tools do to the world; the operator says that.
"""

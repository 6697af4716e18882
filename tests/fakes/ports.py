"""A port for a server that somebody else starts."""

import socket


def free_port() -> int:
    """TCP, of loopback, free a moment ago."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]

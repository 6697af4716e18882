"""A node's process as its front sees it: `python tiny_node.py CHANNEL SPEC`. It is ready at once, says so once, and answers each
connection with its process id. It needs nothing of ours, so it starts in no time.

The environment variable TINY_NODE: `crash` ends it at once, `stubborn` hears no SIGTERM."""

import json
import os
import signal
import socket
import sys


def main() -> int:
    how = os.environ.get("TINY_NODE", "")
    if how == "crash":
        return 3
    signal.signal(signal.SIGTERM, signal.SIG_IGN if how == "stubborn" else _end)
    channel = socket.socket(fileno=int(sys.argv[1]))
    channel.send(json.dumps({"ready": True, "draining": False, "sessions": 3}).encode())
    while True:
        message, descriptors, _, _ = socket.recv_fds(channel, 1 << 16, 1)
        if not message:
            return 0
        with socket.socket(fileno=descriptors[0]) as connection:
            body = str(os.getpid()).encode()
            connection.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))


def _end(number: int, frame: object) -> None:
    sys.exit(0)


if __name__ == "__main__":
    sys.exit(main())

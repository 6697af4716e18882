"""Where the server is, as people write it."""

import re


def server_address(given: str) -> str:
    """`http://host:port`, also when the scheme is missing, is that of a WebSocket, or the `/v1` of a stock client's
    `base_url` stands at the end."""
    address = given if "://" in given else f"http://{given}"
    return re.sub("^ws", "http", address.rstrip("/").removesuffix("/v1").rstrip("/"))

"""A client's end of a realtime session, whatever carries it."""

from typing import Protocol


class Ended(Exception):
    """The connection is over. `code` is the WebSocket close code that says so; None: the client has gone, nothing can be said to
    it any more. `left`: it has said goodbye, and will not come back. `last_word` is the code of the error that it is told before,
    of `last_type`; empty: none."""

    def __init__(
        self,
        code: int | None = None,
        reason: str = "the client has gone",
        *,
        left: bool = False,
        last_word: str = "",
        last_type: str = "invalid_request_error",
    ) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason
        self.left = left
        self.last_word = last_word
        self.last_type = last_type


class Wire(Protocol):
    @property
    def is_delivered(self) -> bool:
        """All that was sent has reached the client, as far as can be known."""
        ...

    async def receive(self) -> bytes:
        """The next message, as text in UTF-8. Raises Ended, and Refusal for a message of another kind."""
        ...

    async def send(self, text: bytes) -> None:
        """Returns when the message is on its way. Raises Ended when the client has gone, or takes nothing any more."""
        ...

"""Recognition → language model: the whole transcript becomes the last user message."""

from engines.parameters import Parameters
from engines.payloads import Payload


class TranscriptPrompt:
    """Collects the segments of a transcript and hands them on as one text when recognition has ended.

    Silence gives no input at all: there is nothing to answer.
    """

    def __init__(self, parameters: Parameters) -> None:
        self._segments: list[str] = []

    def feed(self, payload: Payload) -> list[Payload]:
        self._segments.append(payload.text)
        return []

    def finish(self) -> list[Payload]:
        transcript = "".join(self._segments).strip()
        return [Payload(text=transcript)] if transcript else []

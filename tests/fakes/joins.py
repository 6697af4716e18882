"""A bridge and a join whose work can be read off their texts."""

from engines.payloads import Payload


class Marked:
    """Puts `<` before and `>` after each text, and ends with `.`; `raise` raises, `swallow` gives nothing."""

    def __init__(self, parameters: object) -> None:
        pass

    def feed(self, payload: Payload) -> list[Payload]:
        if payload.text == "raise":
            raise RuntimeError("scripted")
        return [] if payload.text == "swallow" else [Payload(f"<{payload.text}>")]

    def finish(self) -> list[Payload]:
        return [Payload(".")]


class Pairs:
    """The first text of each source together, then the second of each, and so on; what is left over comes at the end."""

    def __init__(self, parameters: object, sources: tuple[str, ...]) -> None:
        self._texts: dict[str, list[str]] = {source: [] for source in sources}
        self._unended = set(sources)

    def feed(self, source: str, payload: Payload) -> list[Payload]:
        if payload.text == "<unmatched>":
            raise RuntimeError("unmatched")
        self._texts[source].append(payload.text)
        if all(self._texts.values()):
            return [Payload("".join(texts.pop(0) for texts in self._texts.values()))]
        return []

    def finish(self, source: str) -> list[Payload]:
        self._unended.discard(source)
        if self._unended:
            return []
        return [Payload(text) for texts in self._texts.values() for text in texts]

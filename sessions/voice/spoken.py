"""Which words of an answer have been spoken at which time."""

import msgspec


class Clause(msgspec.Struct):
    """Characters [written_start, written_end) of the answer sound during [start_ms, end_ms) of its audio."""

    index: int
    written_start: int
    written_end: int
    start_ms: float
    end_ms: float
    complete: bool


class Spoken(msgspec.Struct):
    """Grows with the audio of one item. `characters_per_second` places a cut in a clause whose audio is not complete."""

    characters_per_second: float
    clauses: list[Clause] = []
    duration_ms: float = 0.0

    def add(self, clause: int, written_end: int, duration_ms: float, complete: bool) -> None:
        """The next stretch of audio, which belongs to the clause that ends at `written_end`."""
        begun_ms, self.duration_ms = self.duration_ms, self.duration_ms + duration_ms
        if self.clauses and self.clauses[-1].index == clause:
            last = self.clauses[-1]
            last.written_end, last.end_ms, last.complete = written_end, self.duration_ms, complete
            return
        if self.clauses:
            self.clauses[-1].complete = True
        written_start = self.clauses[-1].written_end if self.clauses else 0
        self.clauses.append(Clause(clause, written_start, written_end, begun_ms, self.duration_ms, complete))

    def heard(self, text: str, until_ms: float) -> str:
        """The beginning of `text` that was heard when playback stopped at `until_ms`, cut at a word's end."""
        heard = 0
        for clause in self.clauses:
            if clause.complete and until_ms >= clause.end_ms:
                heard = clause.written_end
                continue
            if until_ms > clause.start_ms:
                heard = self._cut_inside(clause, text, until_ms)
            break
        return text if not text[heard:].strip() else text[:heard].rstrip()

    def between(self, text: str, start_ms: float, end_ms: float) -> str:
        """The words of `text` that sound in this stretch, the first one also when only its end does."""
        return text[len(self.heard(text, start_ms)) : len(self.heard(text, end_ms))].strip()

    def _cut_inside(self, clause: Clause, text: str, until_ms: float) -> int:
        length = clause.written_end - clause.written_start
        if clause.complete:
            spoken = length * (until_ms - clause.start_ms) / (clause.end_ms - clause.start_ms)
        else:
            spoken = min((until_ms - clause.start_ms) / 1000 * self.characters_per_second, length)
        cut = clause.written_start + int(spoken)
        while clause.written_start < cut < len(text) and not text[cut].isspace():
            cut -= 1
        return cut

"""Words as a recogniser writes them, compared."""

import re
from collections.abc import Sequence, Set
from difflib import SequenceMatcher

HUM = re.compile(r"[hm]+|([eu][hm]+)+")
"""mhm, m-hm, hmm, uh-huh, um, as recognisers spell them."""
MARK = re.compile(r"[\W_]")
UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
"""Thai, Lao, Burmese, Khmer, Japanese and Chinese."""
UNSPACED_OR_WORD = re.compile(f"[{UNSPACED}]|[^{UNSPACED}]+")
ECHOED_SHARE = 0.7
"""Of 57 stretches of 0.8–2.5 s of an agent's speech, heard at −20 and −30 dB by the default recogniser, 79 % kept so many of
their words in order (89 % of those with four and more). Of 35 questions by users none had more than 0.5 in common with an
answer."""
STRETCHED_SHARE = 0.3
"""So many more words than were heard may have been said in the same time: the rest was lost."""
LONGEST_PHRASE = 3
"""Words of a back-channel."""


def words_of(text: str) -> tuple[str, ...]:
    """Letters and digits of any script, without case and marks: "M.H.M." and "uh-huh" are one word each, "that's" stays one.
    Where words are written without spaces, each character counts as one."""
    written = (MARK.sub("", word) for word in text.casefold().split())
    return tuple(word for joined in written for word in UNSPACED_OR_WORD.findall(joined))


def is_backchannel(words: Sequence[str], phrases: Set[str]) -> bool:
    """Whether all of it is made of such phrases and of hums. Without phrases nothing is."""
    if not phrases or not words:
        return False
    place = 0
    while place < len(words):
        length = next((n for n in range(LONGEST_PHRASE, 0, -1) if " ".join(words[place : place + n]) in phrases), 0)
        if length == 0 and HUM.fullmatch(words[place]) is None:
            return False
        place += max(length, 1)
    return True


def repeats(words: Sequence[str], said: Sequence[str]) -> bool:
    """Whether these words were said, in this order and close together, with some lost or misheard. One word alone proves
    nothing."""
    if len(words) < 2:
        return False
    width = len(words) + max(round(len(words) * STRETCHED_SHARE), 1)
    stretches = (said[start : start + width] for start in range(max(len(said) - width, 0) + 1))
    return any(_matched(words, stretch) >= ECHOED_SHARE * len(words) for stretch in stretches)


def _matched(words: Sequence[str], said: Sequence[str]) -> int:
    return sum(block.size for block in SequenceMatcher(None, said, words, autojunk=False).get_matching_blocks())

"""Whether what a user utters while the agent has the floor is an interruption. A pure decision; who asks it holds the playout."""

from enum import Enum, auto

import msgspec

from sessions.voice.settings import VoiceSettings
from sessions.voice.spoken_words import is_backchannel, repeats, words_of

LONGEST_STEP_MS = 3_000
"""Voice that comes between two questions about its words: half of what was asked about, and so much at most."""


class Verdict(Enum):
    """ASK: what was said decides, so have it recognised. WAIT: nothing new yet."""

    CONFIRM = auto()
    DENY = auto()
    ASK = auto()
    WAIT = auto()


class Guards(msgspec.Struct, frozen=True, kw_only=True):
    """What is demanded of an interruption; see VoiceSettings for the meaning of each."""

    minimum_ms: int
    length_ms: int
    least_words: int
    backchannels: frozenset[str]
    echo: bool
    echo_guard_ms: int

    @property
    def ask_words(self) -> bool:
        return self.least_words > 0 or bool(self.backchannels)


class Utterance(msgspec.Struct, frozen=True, kw_only=True):
    """`voiced_ms` of it have been heard, `asked_ms` of them had been when its words were last asked for. `over`: it pauses.

    `words` None: not known. `unknowable`: the recogniser has failed, or takes too long. `saying` is what the agent said meanwhile
    and `sounding_ms` for how long it has been heard, None before its first sound. `echo_known`: its echo is taken out already, by
    its level. `unopposed`: it has given up the floor meanwhile; `goes_on`: it will not do so in a moment.
    """

    voiced_ms: int
    over: bool
    asked_ms: int = 0
    words: str | None = None
    unknowable: bool = False
    saying: str = ""
    sounding_ms: int | None = None
    echo_known: bool = False
    unopposed: bool = False
    goes_on: bool = True


def guards(settings: VoiceSettings) -> Guards:
    return Guards(
        minimum_ms=settings.minimum_speech_ms,
        length_ms=settings.interruption_ms,
        least_words=settings.interruption_words,
        backchannels=frozenset(" ".join(words_of(each)) for each in settings.backchannels),
        echo=settings.echo_guard,
        echo_guard_ms=settings.echo_guard_ms,
    )


def judge(utterance: Utterance, guards: Guards) -> Verdict:
    if utterance.words is not None:
        return _by_words(utterance, utterance.words, guards)
    if utterance.over and utterance.voiced_ms < min(guards.minimum_ms, guards.length_ms):
        return Verdict.DENY
    if utterance.unknowable or guards.length_ms == 0:
        return Verdict.CONFIRM
    step_ms = max(min(utterance.asked_ms // 2, LONGEST_STEP_MS), guards.length_ms)
    if utterance.voiced_ms - utterance.asked_ms >= step_ms:
        return Verdict.ASK if guards.ask_words or _may_be_echo(utterance, guards) else Verdict.CONFIRM
    if utterance.over:
        return Verdict.ASK if guards.ask_words else Verdict.DENY
    return Verdict.WAIT


def _may_be_echo(utterance: Utterance, guards: Guards) -> bool:
    if guards.echo and not utterance.echo_known:
        return utterance.sounding_ms is not None or utterance.saying != ""
    return utterance.sounding_ms is not None and utterance.sounding_ms < guards.echo_guard_ms


def _by_words(utterance: Utterance, heard: str, guards: Guards) -> Verdict:
    words = words_of(heard)
    sounding = utterance.sounding_ms is not None
    meaningless = (
        len(words) < guards.least_words
        or (sounding and utterance.goes_on and is_backchannel(words, guards.backchannels))
        or (_may_be_echo(utterance, guards) and repeats(words, words_of(utterance.saying)))
    )
    if not meaningless:
        return Verdict.CONFIRM
    return Verdict.DENY if utterance.over or utterance.unopposed else Verdict.WAIT

"""How many frames the decoder works on for each that it emits, with the real weights and the real chunk schedule."""

from engines.models import InvalidInput, Produced
from engines.models.piper_decoder import PiperDecoder
from engines.models.piper_talker import PiperTalker
from engines.parameters import Speech
from engines.payloads import Payload
from engines.pipelines.voice import VOICE
from engines.weights import directory

FOUR_SECONDS = "The train to the coast leaves at noon, and it takes about two hours to get there."


def one(outcome: list[Produced] | InvalidInput) -> list[Produced]:
    if isinstance(outcome, InvalidInput):
        raise outcome
    return outcome


def decode_ratio(text: str = FOUR_SECONDS) -> float:
    """Frames decoded over frames emitted for one sentence."""
    talker = PiperTalker.load(directory("piper-joe"), {})
    decoder = PiperDecoder.load(directory("piper-joe"), {})
    speech = Speech(voice="joe")
    [frames] = one(talker.run([(talker.open(speech), Payload(text=text))])[0])
    sounding = decoder.open(speech)
    windows = VOICE.edge("talker", "code2wav").bridge(speech).feed(frames.payload)
    chunks = [chunk for window in windows for chunk in one(decoder.run([(sounding, window)])[0])]
    decoded = sum(int(chunk.payload.attributes["decoded"]) for chunk in chunks)
    return round(decoded / sum(chunk.units for chunk in chunks), 3)

"""What a request asks of each kind of stage. Validated at the edge; engines trust them."""

from typing import Literal, TypeAlias

import msgspec


class Message(msgspec.Struct, frozen=True):
    """One entry of the conversation as the language model sees it."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str


class Activity(msgspec.Struct, frozen=True, tag="activity"):
    """Voice activity over a stream of audio. `with_audio` adds the audio at 16 kHz to the probabilities, for recognition."""

    with_audio: bool = False


class EndOfTurn(msgspec.Struct, frozen=True, tag="end_of_turn"):
    """Has the speaker finished? Asked of the last 8 s of audio."""


class Recognition(msgspec.Struct, frozen=True, tag="recognition"):
    """Speech to text. `language` is an ISO 639-1 code."""

    language: str = "en"


class Generation(msgspec.Struct, frozen=True, tag="generation"):
    """Text from the language model. When the stage is fed by recognition, the transcript becomes the last user message.

    `max_tokens` None means what fits into the model's context. `weigh_ending` asks for no text: the final chunk's attribute
    `ending` is the log-probability that the last message ends where it does, rather than goes on.
    """

    messages: tuple[Message, ...] = ()
    max_tokens: int | None = None
    temperature: float = 0.0
    top_p: float = 1.0
    repetition_penalty: float = 1.1
    stop: tuple[str, ...] = ()
    seed: int | None = None
    weigh_ending: bool = False


class Speech(msgspec.Struct, frozen=True, tag="speech"):
    """Text to speech. `speed` 1.0 is the voice's own pace; the noise of the voice is drawn from `seed`.

    `rate` is the sample rate of the audio wanted, in Hz.
    """

    voice: str
    speed: float = 1.0
    seed: int = 0
    rate: int = 24_000


class Picture(msgspec.Struct, frozen=True, tag="picture"):
    """Pictures or a film from a prompt (the input's text) by a pipeline of denoising steps. None: what the pipeline itself takes.

    `width` and `height` are in pixels; `frames` more than 1 is a film, of just so many or, with `about_frames`, of the number
    nearest to it that the pipeline can make. `sampler` is a name of engines/diffusion/pipelines. The noise is drawn from `seed`.
    `strength` in (0, 1] is how much of a given picture is painted anew. `previews` is how many times the unfinished picture is
    shown.
    """

    width: int | None = None
    height: int | None = None
    frames: int | None = None
    steps: int | None = None
    guidance: float | None = None
    negative_prompt: str | None = None
    sampler: str = ""
    seed: int = 0
    strength: float | None = None
    previews: int = 0
    about_frames: bool = False


class Development(msgspec.Struct, frozen=True, tag="development"):
    """Painted pixels into files. `quality`, from 0 to 100, is what JPEG and WebP keep; a film (mp4) shows `frames_per_s`.
    `as_base64`: pictures come as that text, so that whoever puts them into JSON has nothing to compute."""

    format: Literal["png", "jpeg", "webp", "mp4"] = "png"
    quality: int = 95
    frames_per_s: int = 16
    as_base64: bool = False


class Denoising(msgspec.Struct, frozen=True, tag="denoising"):
    """Jobs of a native step model. The noise of job k is drawn from (`seed`, `session`, k), never from a global generator: two
    requests with equal ones draw the same."""

    seed: int = 0
    session: str = ""
    steps: int | None = None
    sampler: Literal["flow", "edm"] | None = None


Parameters: TypeAlias = Activity | EndOfTurn | Recognition | Generation | Speech | Picture | Development | Denoising

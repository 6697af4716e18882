"""One answer of the graph to a chat: opened, fed and read, whatever the response's form."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping

from engines.payloads import Payload, Scalar
from engines.requests import Request, RequestStream
from realtime.context import AppContext
from realtime.rest.chat_body import ChatBody, SpokenAnswer
from realtime.rest.chat_records import CachedTokens, ChatUsage
from realtime.rest.conversation import Conversation, Recording
from realtime.rest.media_faults import media_faults
from realtime.rest.recognition import EAR_RATE_HZ, Heard, feed, recognition_parameters
from realtime.rest.request_ids import new_id
from realtime.rest.stopwatch import Stopwatch
from realtime.rest.voices import RATE_HZ
from realtime.together import together
from sessions.usage import AUDIO_IN_S, AUDIO_OUT_S, TOKENS_IN, TOKENS_OUT


class ChatAnswer:
    """Iterate `pieces` to the end; the other fields are whole afterwards. `heard` is the transcript of a spoken question."""

    def __init__(self, stream: RequestStream, watch: Stopwatch) -> None:
        self.watch = watch
        self.text = ""
        self.heard: str | None = None
        self._stream = stream
        self._counts: Mapping[str, Scalar] = {}

    async def pieces(self) -> AsyncGenerator[str | bytes, None]:
        """Text as it is written, and PCM16 mono at 24 kHz as it is spoken."""
        async for delivery in self._stream:
            payload = delivery.payload
            match delivery.output:
                case "transcript":
                    self.heard = (self.heard or "") + payload.text
                    self.watch.transcript()
                case "text":
                    self._count(payload.attributes)
                    if payload.text:
                        self.watch.text()
                        self.text += payload.text
                        yield payload.text
                case _:
                    pcm = payload.arrays.get("pcm")
                    if pcm is not None and pcm.data:
                        self.watch.audio()
                        self.watch.add_audio(len(pcm.data) / 2 / RATE_HZ)
                        self.watch.usage.add(AUDIO_OUT_S, len(pcm.data) / 2 / RATE_HZ)
                        yield bytes(pcm.data)

    def _count(self, counts: Mapping[str, Scalar]) -> None:
        """The tokens so far, which are billed also when the answer is broken off."""
        if "completion_tokens" in counts:
            before, self._counts = self.usage, counts
            self.watch.usage.add(TOKENS_IN, self.usage.prompt_tokens - before.prompt_tokens)
            self.watch.usage.add(TOKENS_OUT, self.usage.completion_tokens - before.completion_tokens)

    @property
    def finish_reason(self) -> str:
        return str(self._counts.get("finish_reason", "stop"))

    @property
    def usage(self) -> ChatUsage:
        prompt, completion = int(self._counts.get("prompt_tokens", 0)), int(self._counts.get("completion_tokens", 0))
        cached = CachedTokens(int(self._counts.get("cached_tokens", 0)))
        return ChatUsage(prompt, completion, prompt + completion, cached)


Reader = Callable[[ChatAnswer], Awaitable[None]]


async def answer_chat(
    context: AppContext, body: ChatBody, talk: Conversation, spoken: SpokenAnswer | None, watch: Stopwatch, read: Reader
) -> None:
    """Open the request, feed it and `read` its answer, side by side. Raises RequestFailed, Refusal."""
    order = _order(body, talk, spoken)
    if talk.question is not None:
        await _answer_recording(context, order, talk.question, watch, read)
        return
    async with await context.graph.submit(order) as stream:
        watch.follow(stream)
        await stream.push(Payload(), final=True)
        await read(ChatAnswer(stream, watch))


async def _answer_recording(context: AppContext, order: Request, question: Recording, watch: Stopwatch, read: Reader) -> None:
    """The whole cascade: hear, think and, when asked to, speak."""
    with media_faults(question.field):
        async with context.media.decode(EAR_RATE_HZ) as upload:
            await upload.write(question.data)
            upload.finish()
            first = await anext(upload)
            async with await context.graph.submit(order) as stream:
                watch.follow(stream)
                answer, heard = ChatAnswer(stream, watch), Heard()
                try:
                    await together(feed(stream, first, upload, heard), _read(read, answer))
                finally:
                    watch.usage.add(AUDIO_IN_S, heard.seconds)


async def _read(read: Reader, answer: ChatAnswer) -> None:
    await read(answer)


def _order(body: ChatBody, talk: Conversation, spoken: SpokenAnswer | None) -> Request:
    outputs = ("text",) if spoken is None else ("text", spoken.voice.output)
    parameters = {} if spoken is None else spoken.voice.parameters()
    parameters["thinker"] = body.generation(talk.messages)
    entry = "thinker"
    if talk.question is not None:
        entry, outputs = "vad", ("transcript", *outputs)
        parameters |= recognition_parameters()
    return Request(request_id=new_id("chatcmpl"), entry=entry, outputs=outputs, parameters=parameters)

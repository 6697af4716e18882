"""The unmodified `openai` package against chat, speech, transcriptions and realtime, with real models."""

import asyncio
import base64
import io

import openai
import pytest
from openai.resources.realtime.realtime import AsyncRealtimeConnection

import recordings

pytestmark = [pytest.mark.real_models, pytest.mark.timeout(180)]

CHAT_MODEL = "smollm2-135m-instruct"
REALTIME_MODEL = "antiphon-voice"


async def test_chat_answers_and_counts_its_tokens(client: openai.AsyncOpenAI) -> None:
    answer = await client.chat.completions.create(
        model=CHAT_MODEL, messages=[{"role": "user", "content": "What is the capital of France?"}], max_tokens=30
    )
    assert "Paris" in (answer.choices[0].message.content or "")
    assert answer.usage is not None
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens


async def test_streamed_chat_ends_with_one_finish_reason(client: openai.AsyncOpenAI) -> None:
    stream = await client.chat.completions.create(
        model=CHAT_MODEL, messages=[{"role": "user", "content": "Count to three."}], max_tokens=20, stream=True
    )
    chunks = [chunk async for chunk in stream]
    reasons = [choice.finish_reason for chunk in chunks for choice in chunk.choices]
    assert [reason for reason in reasons if reason] == reasons[-1:]
    assert len(chunks) > 3


async def test_what_is_spoken_is_heard_again(client: openai.AsyncOpenAI) -> None:
    text = "The quick brown fox jumps over the lazy dog."
    async with client.audio.speech.with_streaming_response.create(
        model="piper-joe", voice="joe", input=text, response_format="flac"
    ) as response:
        flac = await response.read()
    heard = await client.audio.transcriptions.create(model="whisper-tiny-en", file=("fox.flac", flac))
    assert heard.text.strip().rstrip(".").lower() == text.rstrip(".").lower()


async def test_chat_with_audio_in_and_out(client: openai.AsyncOpenAI, question_wav: bytes) -> None:
    question = base64.b64encode(question_wav).decode()
    answer = await client.chat.completions.create(
        model=CHAT_MODEL,
        modalities=["text", "audio"],
        audio={"voice": "joe", "format": "wav"},
        messages=[{"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": question, "format": "wav"}}]}],
        max_tokens=30,
    )
    audio = answer.choices[0].message.audio
    assert audio is not None
    assert "Paris" in audio.transcript
    samples, rate = recordings.read_file(io.BytesIO(base64.b64decode(audio.data)))
    assert rate == recordings.RATE
    assert float(abs(samples).max()) > 0.05


async def test_a_spoken_turn_over_realtime(client: openai.AsyncOpenAI) -> None:
    question = recordings.read_by_espeak("What is the capital of France?")
    async with client.realtime.connect(model=REALTIME_MODEL) as connection:
        speaking = asyncio.create_task(_speak(connection, question.pcm() + recordings.to_pcm(recordings.silence(2))))
        heard, said, pcm, kinds = "", "", b"", list[str]()
        async for event in connection:
            kinds.append(event.type)
            match event.type:
                case "conversation.item.input_audio_transcription.completed":
                    heard = event.transcript
                case "response.output_audio_transcript.delta":
                    said += event.delta
                case "response.output_audio.delta":
                    pcm += base64.b64decode(event.delta)
                case "response.done":
                    break
                case _:
                    pass
        await speaking
    assert "capital of France" in heard
    assert "Paris" in said
    assert len(pcm) > recordings.RATE
    order = [kinds.index(kind) for kind in TURN_ORDER]
    assert order == sorted(order)


TURN_ORDER = (
    "input_audio_buffer.speech_started",
    "input_audio_buffer.speech_stopped",
    "input_audio_buffer.committed",
    "conversation.item.added",
    "response.created",
    "response.output_item.added",
    "response.content_part.added",
    "response.output_audio.delta",
    "response.output_audio.done",
    "response.output_audio_transcript.done",
    "response.content_part.done",
    "response.output_item.done",
    "response.done",
)


async def test_a_text_turn_over_realtime(client: openai.AsyncOpenAI) -> None:
    async with client.realtime.connect(model=REALTIME_MODEL) as connection:
        await connection.session.update(session={"type": "realtime", "output_modalities": ["text"]})
        await connection.conversation.item.create(
            item={
                "type": "message",
                "role": "user",
                "content": [{"type": "input_text", "text": "What is the capital of France?"}],
            }
        )
        await connection.response.create()
        text = ""
        async for event in connection:
            if event.type == "response.output_text.delta":
                text += event.delta
            if event.type == "response.done":
                break
    assert "Paris" in text


async def _speak(connection: AsyncRealtimeConnection, pcm: bytes) -> None:
    """Faster than real time, as a program would send a file."""
    for offset in range(0, len(pcm), 4_800):
        await connection.input_audio_buffer.append(audio=base64.b64encode(pcm[offset : offset + 4_800]).decode())

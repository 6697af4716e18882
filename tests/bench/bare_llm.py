"""vLLM's AsyncLLM without anything of ours around it, in a process of its own, with the settings of a deployment's stage.

It gets questions over a socket pair, tokenises them with the model's chat template, and takes its times inside: from the call
to where AsyncLLM's generator yields. Run by BareLlm.
"""

import asyncio
import contextlib
import gc
import itertools
import os
import signal
import socket
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import uvloop

from bench.load import Answer, Question
from engines.models.options import VllmOptions
from engines.models.vllm_text import engine_arguments, sampling_parameters, settle_environment
from engines.parameters import Generation

if TYPE_CHECKING:
    from vllm.v1.engine.async_llm import AsyncLLM

ENVIRONMENT = {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
"""That of our workers, as far as it matters here."""
READY_TIMEOUT_S = 120
STOP_TIMEOUT_S = 5


class Settings(msgspec.Struct, frozen=True):
    directory: str
    options: VllmOptions
    slots: int


class Asked(msgspec.Struct, frozen=True):
    number: int
    question: Question


class Answered(msgspec.Struct, frozen=True):
    number: int
    answer: Answer


class BareLlm:
    """The process, seen from the outside. Made by `running`."""

    def __init__(self, pid: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.pid = pid
        self._reader = reader
        self._writer = writer
        self._numbers = itertools.count()
        self._waiting: dict[int, asyncio.Future[Answer]] = {}

    @classmethod
    @asynccontextmanager
    async def running(cls, settings: Settings) -> "AsyncGenerator[BareLlm]":
        """Ready and warm."""
        ours, theirs = socket.socketpair()
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", f"from bench import bare_llm; bare_llm.serve({theirs.fileno()})"),
            pass_fds=(theirs.fileno(),),
            stdout=sys.stderr,
            env=os.environ | ENVIRONMENT,
            start_new_session=True,
        )
        theirs.close()
        reader, writer = await asyncio.open_unix_connection(sock=ours)
        try:
            writer.write(msgspec.json.encode(settings) + b"\n")
            await asyncio.wait_for(reader.readexactly(1), READY_TIMEOUT_S)
            bare = cls(process.pid, reader, writer)
            listening = asyncio.create_task(bare._listen())
            yield bare
            listening.cancel()
        finally:
            writer.close()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), STOP_TIMEOUT_S)
            with contextlib.suppress(ProcessLookupError):  # while it loads it does not look, and vLLM has a process of its own
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()

    async def ask(self, question: Question) -> Answer:
        number = next(self._numbers)
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        self._writer.write(msgspec.json.encode(Asked(number, question)) + b"\n")
        return await answer

    async def _listen(self) -> None:
        while line := await self._reader.readline():
            answered = msgspec.json.decode(line, type=Answered)
            self._waiting.pop(answered.number).set_result(answered.answer)
        for answer in self._waiting.values():
            answer.set_exception(ConnectionResetError("the process of the bare AsyncLLM has ended"))


# inside the process


def serve(descriptor: int) -> None:
    settle_environment()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:  # as in our workers
        runner.run(_serve(socket.socket(fileno=descriptor)))
    os._exit(0)  # the libraries have a lot to say about their own leaks otherwise


async def _serve(connection: socket.socket) -> None:
    from vllm.v1.engine.async_llm import AsyncLLM

    reader, writer = await asyncio.open_unix_connection(sock=connection)
    settings = msgspec.json.decode(await reader.readline(), type=Settings)
    llm = AsyncLLM.from_engine_args(engine_arguments(Path(settings.directory), settings.options, settings.slots))
    await _answer(llm, Question("Are you awake?", 4), 0)
    gc.collect()
    gc.freeze()  # as our workers do
    writer.write(b"!")

    async def reply(asked: Asked) -> None:
        answer = await _answer(llm, asked.question, asked.number + 1)
        writer.write(msgspec.json.encode(Answered(asked.number, answer)) + b"\n")

    async with asyncio.TaskGroup() as group:
        while line := await reader.readline():
            group.create_task(reply(msgspec.json.decode(line, type=Asked)))
    llm.shutdown()


async def _answer(llm: "AsyncLLM", question: Question, number: int) -> Answer:
    from vllm.inputs import tokens_input

    asked_at, first_at, tokens = time.monotonic(), None, 0
    tokenizer = llm.get_tokenizer()
    conversation: list[Any] = [{"role": "user", "content": question.text}]
    prompt = tokenizer.apply_chat_template(  # pyright: ignore[reportUnknownMemberType]  untyped **kwargs
        conversation, add_generation_prompt=True, tokenize=False
    )
    assert isinstance(prompt, str), "tokenize=False gives text"
    inputs = tokens_input(tokenizer.encode(prompt, add_special_tokens=False))
    sampling = sampling_parameters(Generation(max_tokens=question.max_tokens), question.max_tokens)
    async for output in llm.generate(inputs, sampling, f"q{number}"):
        if first_at is None and output.outputs[0].text:
            first_at = time.monotonic()
        tokens += len(output.outputs[0].token_ids)
    ended_at = time.monotonic()
    return Answer((first_at or ended_at) - asked_at, ended_at - asked_at, tokens)

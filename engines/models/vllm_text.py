"""A language model on vLLM's AsyncLLM, which batches continuously and keeps the KV cache of shared prefixes.

vLLM runs its EngineCore in a process of its own; this file is the only one that imports it.
"""

import asyncio
import itertools
import logging
import math
import multiprocessing
import os
from collections.abc import AsyncGenerator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from engines.models import InvalidInput
from engines.models.options import VllmOptions
from engines.models.text import ModelDied, TextDelta
from engines.parameters import Generation, Message

if TYPE_CHECKING:
    from vllm import RequestOutput, SamplingParams
    from vllm.engine.arg_utils import AsyncEngineArgs

ENDING_MARKS = (".", "?", "!", ".\n", "?\n")
LIKELIEST = 20
"""How many next tokens vLLM tells the probability of: what is not among them adds nothing that matters."""

WARM_WORDS = (2, 60)
WARM_BATCH = 3

ENVIRONMENT = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",  # the model runs inside EngineCore: two processes and not three
    "VLLM_WORKER_MULTIPROC_METHOD": "spawn",  # a fork would inherit the worker's sockets and keep them open
    "VLLM_LOGGING_LEVEL": "ERROR",  # some twenty lines of warnings that no operator can act on
    "TORCHDYNAMO_DISABLE": "1",  # it would compile a function of four lines with g++ at the first question
    "TQDM_DISABLE": "1",
    "TORCH_CPP_LOG_LEVEL": "ERROR",
    "PYTHONWARNINGS": "ignore",
    "VLLM_NO_USAGE_STATS": "1",
    "HF_HUB_OFFLINE": "1",
}


def settle_environment() -> None:
    """Before vLLM is imported, which reads it."""
    logging.getLogger("vllm").setLevel(logging.ERROR)
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)


def engine_arguments(directory: Path, options: VllmOptions, slots: int) -> "AsyncEngineArgs":
    from vllm.engine.arg_utils import AsyncEngineArgs

    return AsyncEngineArgs(
        model=str(directory),
        dtype=options.dtype,
        enforce_eager=options.enforce_eager,
        block_size=options.block_size,
        kv_cache_memory_bytes=options.kv_cache_mb << 20,
        max_model_len=options.max_model_len,
        max_num_seqs=slots,
        enable_prefix_caching=True,
        disable_log_stats=True,
        use_tqdm_on_load=False,
    )


class VllmText:
    """Made by `load`. `generate` runs on one event loop, the same for the object's whole life."""

    @classmethod
    def load(cls, directory: Path, options: dict[str, object], slots: int) -> "VllmText":
        """Takes 15–20 s on two cores. Raises msgspec.ValidationError for options it does not know, and what vLLM raises."""
        chosen = msgspec.convert(options, VllmOptions)
        settle_environment()
        return cls(directory, chosen, slots)

    def __init__(self, directory: Path, options: VllmOptions, slots: int) -> None:
        # Imported late: the import takes seconds and reads the environment set above.
        from vllm.v1.engine.async_llm import AsyncLLM

        self._options = options
        self._slots = slots
        self._engine = AsyncLLM.from_engine_args(engine_arguments(directory, options, slots))
        self._tokenizer = self._engine.get_tokenizer()
        self._tokenising = ThreadPoolExecutor(1, thread_name_prefix="tokeniser")
        self._serial = itertools.count()
        marks = (self._tokenizer.encode(mark, add_special_tokens=False) for mark in ENDING_MARKS)
        self._endings = {self._tokenizer.eos_token_id, *(mark[0] for mark in marks if len(mark) == 1)}

    async def warm_up(self) -> None:
        """Also leaves the warm prompt in the prefix cache. A first long prompt and a first batch cost a second extra."""
        system = (Message("system", self._options.warm_prompt),) if self._options.warm_prompt else ()
        for words in WARM_WORDS:
            talk = (*system, Message("user", "Once more. " * words))
            await asyncio.gather(self.ending(talk), *(self._warm(talk) for _ in range(min(self._slots, WARM_BATCH))))

    async def _warm(self, messages: Sequence[Message]) -> None:
        async for _ in self.generate(messages, Generation(max_tokens=4)):
            pass

    async def generate(self, messages: Sequence[Message], parameters: Generation) -> AsyncGenerator[TextDelta, None]:
        prompt = await self._tokenised(messages, open_ended=False)
        tokens, cached = 0, 0
        async with aclosing(self._outputs(prompt, sampling_parameters(parameters, self._room(prompt)))) as outputs:
            async for output in outputs:
                completion = output.outputs[0]
                tokens += len(completion.token_ids)
                cached = output.num_cached_tokens or cached
                reason = completion.finish_reason
                finish = "" if reason is None else "length" if reason == "length" else "stop"
                yield TextDelta(completion.text, len(prompt), cached, tokens, finish)

    async def ending(self, messages: Sequence[Message]) -> float:
        """One prefill; what stands before the last message is in the prefix cache."""
        from vllm import SamplingParams

        prompt = await self._tokenised(messages, open_ended=True)
        sampling = SamplingParams(max_tokens=1, temperature=0.0, logprobs=LIKELIEST, detokenize=False)
        next_tokens: dict[int, float] = {}
        async with aclosing(self._outputs(prompt, sampling)) as outputs:
            async for output in outputs:
                for place in output.outputs[0].logprobs or ():
                    next_tokens = {token: weight.logprob for token, weight in place.items()}
        likely = [next_tokens[token] for token in self._endings if token in next_tokens]
        return math.log(sum(map(math.exp, likely))) if likely else min(next_tokens.values(), default=-math.inf)

    async def _outputs(self, prompt: list[int], sampling: "SamplingParams") -> "AsyncGenerator[RequestOutput, None]":
        """vLLM's outputs; its refusals and its death as ours."""
        from vllm.exceptions import VLLMClientError
        from vllm.inputs import tokens_input
        from vllm.v1.engine.exceptions import EngineDeadError

        try:
            outputs = self._engine.generate(tokens_input(prompt), sampling, f"r{next(self._serial)}")
            async with aclosing(outputs):
                async for output in outputs:
                    yield output
        except EngineDeadError as dead:
            raise ModelDied("vLLM's EngineCore died") from dead
        except VLLMClientError as refused:
            raise InvalidInput(f"generation: {refused}") from refused

    async def died(self) -> None:
        """vLLM marks itself dead from a thread and tells nobody, so this waits for the end of its process."""
        loop = asyncio.get_running_loop()
        over = asyncio.Event()
        sentinels = [child.sentinel for child in multiprocessing.active_children() if child.name.startswith("EngineCore")]
        for sentinel in sentinels:
            loop.add_reader(sentinel, over.set)
        try:
            await over.wait()
        finally:
            for sentinel in sentinels:
                loop.remove_reader(sentinel)

    def shutdown(self) -> None:
        self._tokenising.shutdown(wait=False)
        self._engine.shutdown()

    async def _tokenised(self, messages: Sequence[Message], *, open_ended: bool) -> list[int]:
        return await asyncio.get_running_loop().run_in_executor(self._tokenising, self._tokens, messages, open_ended)

    def _room(self, prompt: list[int]) -> int:
        return self._options.max_model_len - len(prompt)

    def _tokens(self, messages: Sequence[Message], open_ended: bool) -> list[int]:
        """`open_ended`: the last message is not closed.

        Raises InvalidInput for a prompt that leaves no room for an answer, without tokenising what cannot fit.
        """
        from jinja2 import TemplateError

        conversation: list[Any] = [{"role": message.role, "content": message.content} for message in messages]
        try:
            text = self._tokenizer.apply_chat_template(  # pyright: ignore[reportUnknownMemberType] (untyped **kwargs)
                conversation, add_generation_prompt=not open_ended, continue_final_message=open_ended, tokenize=False
            )
        except TemplateError as refused:
            raise InvalidInput(f"messages: the model's chat template refuses them: {refused}") from refused
        assert isinstance(text, str), "tokenize=False gives text"
        limit = self._options.max_model_len
        fewest = len(text) // self._tokenizer.max_chars_per_token
        if fewest >= limit:
            raise InvalidInput(f"messages: expected fewer than {limit} tokens, got at least {fewest}")
        tokens = self._tokenizer.encode(text, add_special_tokens=False)
        if len(tokens) >= limit:
            raise InvalidInput(f"messages: expected fewer than {limit} tokens, got {len(tokens)}")
        return tokens


def sampling_parameters(parameters: Generation, room: int) -> "SamplingParams":
    """`room`: tokens that are left for the answer. Raises InvalidInput."""
    from vllm import SamplingParams
    from vllm.exceptions import VLLMClientError
    from vllm.sampling_params import RequestOutputKind

    try:
        return SamplingParams(
            max_tokens=min(parameters.max_tokens or room, room),
            temperature=parameters.temperature,
            top_p=parameters.top_p,
            repetition_penalty=parameters.repetition_penalty,
            stop=list(parameters.stop),
            seed=parameters.seed,
            output_kind=RequestOutputKind.DELTA,
        )
    except VLLMClientError as refused:
        raise InvalidInput(f"generation: {refused}") from refused

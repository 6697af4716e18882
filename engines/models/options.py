"""What a deployment may set for each family of models: its stages' `options`.

Apart from the models, whose libraries are heavy: the gateway checks options before anything starts.
"""

from typing import Annotated, Literal, TypeAlias

import msgspec

Count: TypeAlias = Annotated[int, msgspec.Meta(ge=1)]


class NoOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Nothing to choose."""


class PixelsOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an uploaded picture may have: `max_bytes` of its file, `max_pixels`. Larger ones than `kept_pixels` are made smaller;
    all pictures of a request share them, and as pixels, of three bytes each, they must fit into the worker's ring. Sides are
    shortened to a multiple of `side_unit`, as painters need it."""

    max_bytes: Count = 25 << 20
    max_pixels: Count = 50_000_000
    kept_pixels: Count = 4 << 20
    side_unit: Count = 16


class NetworkOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`threads`: cores that one call of the network may use."""

    threads: Count = 1


class NativeOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """For native step models, whose own options inherit from these. None: what the model itself takes.

    `steps`, `sampler` and `shift` (of the flow sampler's times, towards noise when more than 1) are the defaults of requests; the
    solver `heun` asks the network twice a step. `pad_to` more than 0: every forward has so many rows, and so a request's output
    is the same to the last bit whatever else runs beside it (a network that gives a row other
    values at another place, as warming up finds out, gets one row a forward). `state_mb`: memory for the states of all sessions
    together; what does not fit is refused.
    """

    steps: Annotated[int, msgspec.Meta(ge=1, le=1_000)] | None = None
    sampler: Literal["flow", "edm"] | None = None
    solver: Literal["euler", "heun"] = "euler"
    shift: Annotated[float, msgspec.Meta(gt=0, le=100)] | None = None
    pad_to: Annotated[int, msgspec.Meta(ge=0, le=1_024)] = 0
    state_mb: Count = 256


class WhisperOptions(NetworkOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`compute_type`: the type that CTranslate2 computes in, whatever the file holds."""

    compute_type: Literal["default", "auto", "int8", "int8_float32", "int8_bfloat16", "int16", "bfloat16", "float32"] = "int8"


class PiperTalkerOptions(NetworkOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`voice`: the name under which requests ask for this model's one voice."""

    voice: str = "joe"


class VllmOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`max_model_len`: tokens of a conversation and its answer together. `kv_cache_mb`: memory for the conversations that run
    or may go on. `block_size`: tokens that the cache keeps or drops together. `warm_prompt`: the system prompt whose cache
    should be there from the start."""

    max_model_len: Count = 2048
    kv_cache_mb: Count = 256
    dtype: Literal["auto", "bfloat16", "float16", "float32"] = "bfloat16"
    enforce_eager: bool = True
    block_size: Count = 32
    warm_prompt: str = ""


class StepCacheOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When the output of an earlier step answers for a later one: as long as the network's input has changed by less than
    `threshold` in all since then (0.1 is a tenth of its mean size), at most `most_in_a_row` times, and not in the first steps.
    `compare`: each job is done again without it, and says how near it came, to choose a threshold by."""

    threshold: Annotated[float, msgspec.Meta(gt=0)]
    first_steps: Count = 2
    most_in_a_row: Count = 4
    compare: bool = False


class LoraOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`directory`, which counts from the pipeline's folder, holds the file `weight_name`. All of a deployment's are in force for
    all requests."""

    directory: str
    weight_name: str = "pytorch_lora_weights.safetensors"
    scale: float = 1.0


class QuantizationOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Diffusers' own: PipelineQuantizationConfig's quant_backend, quant_kwargs and components_to_quantize."""

    backend: str
    settings: dict[str, bool | int | float | str] = {}
    components: tuple[str, ...] = ()


class DiffusersOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A directory in diffusers layout.

    `dtype` auto is bfloat16 on a GPU and float32 without; `device` auto is the GPU when there is one. `offload` moves networks to
    the GPU when they are needed: whole (`model`) or layer by layer (`sequential`). `compile` are torch.compile's arguments, for
    the denoisers. `arguments` are given to every call of the pipeline. What a request may ask for at most: `max_steps`,
    `max_pixels` of a frame, `max_frames`, `max_prompt_chars` for each prompt, `max_previews`."""

    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    device: Annotated[str, msgspec.Meta(pattern=r"^(auto|cpu|cuda(:\d+)?)$")] = "auto"
    offload: Literal["none", "model", "sequential"] = "none"
    attention_slicing: bool = False
    vae_slicing: bool = False
    vae_tiling: bool = False
    quantization: QuantizationOptions | None = None
    compile: dict[str, bool | str] | None = None
    loras: tuple[LoraOptions, ...] = ()
    step_cache: StepCacheOptions | None = None
    arguments: dict[str, bool | int | float | str] = {}
    max_steps: Count = 150
    max_pixels: Count = 4_194_304
    max_frames: Count = 257
    max_prompt_chars: Count = 8_000
    max_previews: Annotated[int, msgspec.Meta(ge=0)] = 8

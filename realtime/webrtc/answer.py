"""The SDP answer (JSEP, RFC 8829): one stream of sound; one data channel; the rest rejected."""

import ipaddress

import msgspec

from realtime.media.call_codecs import CallCodec
from realtime.webrtc.offer import Fingerprint, Offer, Section
from realtime.webrtc.offered_sound import OfferedSound

_NAMES: dict[CallCodec, str] = {"opus": "opus/48000/2", "pcmu": "PCMU/8000", "pcma": "PCMA/8000"}
_COMFORT_NOISE = "CN/8000"
OPUS = "minptime=10;useinbandfec=1;stereo=0;sprop-stereo=0;maxaveragebitrate=32000"
"""What we like to receive (RFC 7587, 6.1). Without `useinbandfec` browsers send no redundancy, and each loss is a hole."""
PTIME_MS = 20
OUR_SCTP_PORT = 5000


class Ours(msgspec.Struct, frozen=True, kw_only=True):
    """Our side. `candidates` are the values of a=candidate; `host` and `port` those of the first."""

    host: str
    port: int
    candidates: tuple[str, ...]
    ice_username: str
    ice_password: str
    fingerprint: Fingerprint
    ssrc: int
    cname: str
    session_id: int
    max_message_bytes: int


def write_answer(offer: Offer, ours: Ours) -> str:
    lines = ["v=0", f"o=- {ours.session_id} 1 IN IP4 0.0.0.0", "s=-", "t=0 0"]
    if offer.bundle:
        lines.append(f"a=group:BUNDLE {' '.join(offer.bundle)}")
    lines.append("a=msid-semantic:WMS antiphon")
    for place, section in enumerate(offer.sections):
        if place == offer.audio:
            lines += _audio(section, offer, ours)
        elif place == offer.channel:
            lines += _channel(section, offer, ours)
        else:
            lines += _rejected(section)
    return "".join(f"{line}\r\n" for line in lines)


def _audio(section: Section, offer: Offer, ours: Ours) -> list[str]:
    sound = offer.sound
    return [
        f"m=audio {ours.port} {section.profile} {' '.join(str(number) for number, _ in _encodings(sound))}",
        *_transport(section, offer, ours),
        f"a={offer.direction}",
        "a=msid:antiphon voice",
        "a=rtcp:9 IN IP4 0.0.0.0",
        "a=rtcp-mux",
        *(f"a=rtpmap:{number} {encoding}" for number, encoding in _encodings(sound)),
        *([f"a=fmtp:{sound.payload_type} {OPUS}"] if sound.codec == "opus" else []),
        f"a=ptime:{PTIME_MS}",
        f"a=ssrc:{ours.ssrc} cname:{ours.cname}",
    ]


def _encodings(sound: OfferedSound) -> list[tuple[int, str]]:
    comfort = [] if sound.comfort_noise is None else [(sound.comfort_noise, _COMFORT_NOISE)]
    return [(sound.payload_type, _NAMES[sound.codec]), *comfort]


def _channel(section: Section, offer: Offer, ours: Ours) -> list[str]:
    return [
        f"m=application {ours.port} {section.profile} {section.formats}",
        *_transport(section, offer, ours),
        f"a=sctp-port:{OUR_SCTP_PORT}",
        f"a=max-message-size:{ours.max_message_bytes}",
    ]


def _rejected(section: Section) -> list[str]:
    return [f"m={section.kind} 0 {section.profile} {section.formats}", "c=IN IP4 0.0.0.0", *_mid(section), "a=inactive"]


def _mid(section: Section) -> list[str]:
    return [] if section.mid is None else [f"a=mid:{section.mid}"]


def _transport(section: Section, offer: Offer, ours: Ours) -> list[str]:
    return [
        f"c=IN IP{ipaddress.ip_address(ours.host).version} {ours.host}",
        *_mid(section),
        *(f"a=candidate:{candidate}" for candidate in ours.candidates),
        "a=end-of-candidates",
        f"a=ice-ufrag:{ours.ice_username}",
        f"a=ice-pwd:{ours.ice_password}",
        f"a=fingerprint:{ours.fingerprint.algorithm} {ours.fingerprint.value}",
        f"a=setup:{offer.setup}",
    ]

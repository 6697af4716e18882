"""The gate in front of the peer: an SDP offer (RFC 8866, JSEP) becomes a typed record, or a refusal that says what was wrong."""

import re
from typing import Literal

import msgspec

from realtime.errors import Refusal, shown
from realtime.webrtc.candidates import RemoteCandidate, read_candidates
from realtime.webrtc.offered_sound import OfferedSound, read_sound

MAX_OFFER_CHARACTERS = 64 << 10
MAX_SECTIONS = 32
DEFAULT_MAX_MESSAGE_BYTES = 65_536
"""Of a client that names none (RFC 8841, section 6)."""
DEFAULT_SCTP_PORT = 5000

Direction = Literal["sendrecv", "sendonly", "recvonly", "inactive"]
Setup = Literal["active", "passive"]

_OURS: dict[str, Direction] = {"sendrecv": "sendrecv", "sendonly": "recvonly", "recvonly": "sendonly", "inactive": "inactive"}
_SETUPS: dict[str, Setup] = {"actpass": "active", "passive": "active", "active": "passive"}
_SECURE_RTP = {"UDP/TLS/RTP/SAVPF", "UDP/TLS/RTP/SAVP", "RTP/SAVPF", "RTP/SAVP"}
_DATA = {"UDP/DTLS/SCTP", "TCP/DTLS/SCTP"}
_DIGEST_BYTES = {"sha-256": 32, "sha-384": 48, "sha-512": 64}

_SECTION = re.compile(r"m=([a-z]{1,20}) ([0-9]{1,5})(?:/[0-9]{1,5})? ([A-Za-z0-9/]{1,40})((?: [!-~]{1,40}){1,200})")
_MID = re.compile(r"[!-~]{1,32}")
_USERNAME = re.compile(r"[A-Za-z0-9+/]{4,256}")
_PASSWORD = re.compile(r"[A-Za-z0-9+/]{22,256}")
_FINGERPRINT = re.compile(r"(sha-256|sha-384|sha-512) ([0-9A-F]{2}(?::[0-9A-F]{2})*)", re.IGNORECASE)
_NUMBER = re.compile(r"[0-9]{1,10}")


class Fingerprint(msgspec.Struct, frozen=True):
    """Digest of the certificate that the client will show: `algorithm` in small letters, `value` as XX:XX:…"""

    algorithm: str
    value: str


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """What an answer repeats of an m= section, also of one that it rejects."""

    kind: str
    profile: str
    formats: str
    mid: str | None


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """What the client offers, as far as this server takes it up: one stream of sound and one data channel over one transport."""

    sections: tuple[Section, ...]
    audio: int
    """Place of the audio in `sections`; every other one but `channel` is rejected."""
    channel: int | None
    bundle: tuple[str, ...]
    """The mids taken up, in the order of the client's BUNDLE group; empty when it has none."""
    direction: Direction
    """Ours."""
    sound: OfferedSound
    setup: Setup
    """Our side of the DTLS handshake."""
    ice_username: str
    ice_password: str
    ice_lite: bool
    fingerprints: tuple[Fingerprint, ...]
    candidates: tuple[RemoteCandidate, ...]
    sctp_port: int
    max_message_bytes: int
    """Longest message that the client takes; 0: any."""

    @property
    def has_channel(self) -> bool:
        return self.channel is not None


Attributes = dict[str, list[str]]
"""The values of a= lines by name, of the session or of one media section."""


class _Media(msgspec.Struct):
    section: Section
    port: int
    attributes: Attributes


class OfferRefused(Refusal):
    def __init__(self, what: str, expected: str, got: object) -> None:
        super().__init__(f"sdp: {what}: expected {expected}, got {shown(got)}", code="invalid_offer", field="sdp")


def read_offer(sdp: str) -> Offer:
    """Raises Refusal (400, `invalid_offer`), and nothing else whatever the text."""
    session, media = _split(sdp)
    audio, sound = _audio(media)
    channel = _channel(media)
    taken = [media[audio]] if channel is None else [media[audio], media[channel]]
    heard, data = taken[0].attributes, taken[-1].attributes
    if "rtcp-mux" not in heard:
        raise OfferRefused("a=rtcp-mux", "it in the audio section", None)
    return Offer(
        sections=tuple(block.section for block in media),
        audio=audio,
        channel=channel,
        bundle=_bundle(session, [block.section.mid for block in taken]),
        direction=_direction(heard, session),
        sound=sound,
        setup=_setup(_inherited("setup", heard, session)),
        ice_username=_matching("ice-ufrag", _USERNAME, "4 to 256 letters and digits", heard, session),
        ice_password=_matching("ice-pwd", _PASSWORD, "22 to 256 letters and digits", heard, session),
        ice_lite="ice-lite" in session,
        fingerprints=_fingerprints(heard.get("fingerprint", []) + session.get("fingerprint", [])),
        candidates=next((found for block in taken if (found := read_candidates(block.attributes.get("candidate", [])))), ()),
        sctp_port=_number(data, "sctp-port", DEFAULT_SCTP_PORT, 65_535),
        max_message_bytes=_number(data, "max-message-size", DEFAULT_MAX_MESSAGE_BYTES, 1 << 33),
    )


def _split(sdp: str) -> tuple[Attributes, list[_Media]]:
    if len(sdp) > MAX_OFFER_CHARACTERS:
        raise OfferRefused("offer", f"at most {MAX_OFFER_CHARACTERS} characters", len(sdp))
    lines = [line.strip() for line in sdp.split("\n")]
    if lines[0] != "v=0":
        raise OfferRefused("offer", "a session description that begins with v=0", lines[0])
    session: Attributes = {}
    media: list[_Media] = []
    for line in lines:
        if line.startswith("m="):
            media.append(_begin(line))
        elif line.startswith("a="):
            name, _, value = line[2:].partition(":")
            (media[-1].attributes if media else session).setdefault(name, []).append(value.strip())
    if not 0 < len(media) <= MAX_SECTIONS:
        raise OfferRefused("m=", f"1 to {MAX_SECTIONS} media sections", len(media))
    for block in media:
        _name(block)
    return session, media


def _begin(line: str) -> _Media:
    match = _SECTION.fullmatch(line)
    if match is None:
        raise OfferRefused("m=", "m=kind port profile formats", line)
    kind, port, profile, formats = match.groups()
    return _Media(section=Section(kind=kind, profile=profile, formats=formats.strip(), mid=None), port=int(port), attributes={})


def _name(block: _Media) -> None:
    mid = _first(block.attributes, "mid")
    if mid is not None:
        if _MID.fullmatch(mid) is None:
            raise OfferRefused("a=mid", "1 to 32 printable characters", mid)
        block.section = msgspec.structs.replace(block.section, mid=mid)


def _in_use(block: _Media) -> bool:
    return block.port != 0 or "bundle-only" in block.attributes


def _audio(media: list[_Media]) -> tuple[int, OfferedSound]:
    """The place of the first section that carries Opus over SRTP, or else of the first with G.711, and its codec."""
    used = [(place, block) for place, block in enumerate(media) if _in_use(block)]
    heard = [(place, block) for place, block in used if block.section.kind == "audio"]
    if not heard:
        raise OfferRefused("m=audio", "an audio section in use", [block.section.kind for _, block in used])
    secure = [(place, block) for place, block in heard if block.section.profile in _SECURE_RTP]
    if not secure:
        raise OfferRefused("m=audio", "UDP/TLS/RTP/SAVPF", [block.section.profile for _, block in heard])
    known = [(place, sound) for place, block in secure if (sound := _sound(block)) is not None]
    if not known:
        rtpmaps = [value for _, block in secure for value in block.attributes.get("rtpmap", [])]
        raise OfferRefused("a=rtpmap", "opus/48000/2, PCMU/8000 or PCMA/8000", rtpmaps)
    return min(known, key=lambda found: found[1].codec != "opus")


def _sound(block: _Media) -> OfferedSound | None:
    known = block.attributes
    return read_sound(block.section.formats.split(), known.get("rtpmap", []), known.get("fmtp", []))


def _channel(media: list[_Media]) -> int | None:
    for place, block in enumerate(media):
        data = block.section.kind == "application" and block.section.profile in _DATA
        if data and block.section.formats == "webrtc-datachannel" and _in_use(block):
            return place
    return None


def _bundle(session: Attributes, mids: list[str | None]) -> tuple[str, ...]:
    """Everything travels over one transport, so a data channel must be in the audio's BUNDLE group (RFC 9143)."""
    groups = session.get("group", [])
    for semantics, *members in (value.split() for value in groups if value):
        if semantics == "BUNDLE" and all(mid in members for mid in mids):
            return tuple(dict.fromkeys(mid for mid in members if mid in mids))
    if len(mids) > 1:
        raise OfferRefused("a=group", f"BUNDLE with the mids of audio and application, {mids}", groups)
    return ()


def _direction(*levels: Attributes) -> Direction:
    """Of the section, or else of the session."""
    for attributes in levels:
        for theirs, ours in _OURS.items():
            if theirs in attributes:
                return ours
    return "sendrecv"


def _setup(value: str | None) -> Setup:
    if value not in _SETUPS:
        raise OfferRefused("a=setup", "actpass, active or passive", value)
    return _SETUPS[value]


def _first(attributes: Attributes, name: str) -> str | None:
    return attributes[name][0] if name in attributes else None


def _inherited(name: str, section: Attributes, session: Attributes) -> str | None:
    return _first(section if name in section else session, name)


def _matching(name: str, pattern: re.Pattern[str], expected: str, section: Attributes, session: Attributes) -> str:
    value = _inherited(name, section, session)
    if value is None or pattern.fullmatch(value) is None:
        raise OfferRefused(f"a={name}", expected, value)
    return value


def _fingerprints(values: list[str]) -> tuple[Fingerprint, ...]:
    found: dict[Fingerprint, None] = {}
    for value in values:
        match = _FINGERPRINT.fullmatch(value)
        if match is not None and len(match[2].split(":")) == _DIGEST_BYTES[match[1].lower()]:
            found[Fingerprint(match[1].lower(), match[2].upper())] = None
    if not found:
        raise OfferRefused("a=fingerprint", "sha-256, sha-384 or sha-512 of the certificate", values)
    return tuple(found)


def _number(attributes: Attributes, name: str, default: int, most: int) -> int:
    value = _first(attributes, name)
    if value is None:
        return default
    if _NUMBER.fullmatch(value) is None or int(value) > most:
        raise OfferRefused(f"a={name}", f"a number up to {most}", value)
    return int(value)

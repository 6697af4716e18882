"""Which of the streams that a client sends is heard, and how the one that it is sent begins."""

import pytest
from aiortc.rtp import RtcpByePacket

from fakes.offers import CHROMIUM
from realtime.webrtc.audio_streams import TAKES_OVER_PACKETS, AudioStreams
from realtime.webrtc.offer import read_offer
from realtime.webrtc.packets import AudioPacket, Outgoing
from realtime.webrtc.rtp import read_rtp, write_rtp

OPUS = 111
OLD, NEW, OTHER = 7, 8, 9


class Client:
    """Its packets are numbered throughout, in four bytes of payload."""

    def __init__(self) -> None:
        self.heard: list[AudioPacket] = []
        self.streams = AudioStreams(read_offer(CHROMIUM), self.heard.append)
        self._sent = 0

    def sends(self, ssrc: int, count: int = 1) -> None:
        for _ in range(count):
            audio = AudioPacket(self._sent, 960 * self._sent, self._sent.to_bytes(4))
            self.streams.receive(write_rtp(ssrc, OPUS, marker=False, audio=audio))
            self._sent += 1

    def places(self) -> list[tuple[int, int]]:
        """The number of each packet that was heard, and of its stream."""
        return [(int.from_bytes(packet.payload), packet.stream) for packet in self.heard]


@pytest.fixture
def client() -> Client:
    return Client()


def test_a_client_that_changes_its_stream_in_mid_word_loses_nothing(client: Client) -> None:
    client.sends(OLD, 50)
    client.sends(NEW, 50)
    assert client.places() == [(place, 1 if place < 50 else 2) for place in range(100)]


@pytest.mark.parametrize("others", [[NEW], [NEW, OTHER]])
def test_a_stream_beside_the_one_that_is_heard_never_takes_over(client: Client, others: list[int]) -> None:
    for _ in range(20):
        client.sends(OLD)
        for other in others:
            client.sends(other, TAKES_OVER_PACKETS - 1)
    assert {stream for _, stream in client.places()} == {1}
    assert len(client.heard) == 20


@pytest.mark.parametrize(("gone", "stream"), [([OLD], 2), ([OTHER, OLD], 2), ([OTHER], 1), ([], 1)])
def test_a_stream_that_says_goodbye_makes_room_at_once(client: Client, gone: list[int], stream: int) -> None:
    client.sends(OLD)
    client.streams.receive_report(bytes(RtcpByePacket(gone)))
    client.sends(NEW)
    assert client.places()[-1][1] == stream
    assert len(client.heard) == stream


def test_numbers_begin_where_they_do_not_wrap_soon() -> None:
    """Else the first wrap could be among the packets that are lost while the client's decoder is being made ready."""
    firsts = [read_rtp(Client().streams._packet(Outgoing(b"", 0))) for _ in range(64)]  # pyright: ignore[reportPrivateUsage]
    sequences = [first.audio.sequence for first in firsts if first is not None]
    assert len(set(sequences)) > 1
    assert max(sequences) < 1 << 15

"""What the operator may set about WebRTC: the deployment's `server.webrtc`."""

import msgspec


class IceServer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A STUN or TURN server that this server itself asks for a candidate. `url`: `stun:host:port` or `turn:host:port?transport=udp`."""

    url: str
    username: str = ""
    credential: str = ""


class WebRtcSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    announced_addresses: tuple[str, ...] = ()
    """Addresses under which clients reach this machine, named in place of its own: for a machine behind a NAT or in a container."""
    udp_ports: tuple[int, int] | None = None
    """First and last UDP port for media, to be opened in a firewall; None leaves the choice to the system."""
    ice_servers: tuple[IceServer, ...] = ()
    """None by default: no third party is asked for anything."""
    connect_timeout_s: float = 10.0
    """A call whose media does not flow after so long gives its seat back."""

"""Speech over WebRTC: calls, their media and their data channel. Only `peer` knows aiortc."""

"""Speech over WebRTC: calls, their media and their data channel. Only `ice`, `dtls`, `channel`, `audio_streams` know aiortc."""

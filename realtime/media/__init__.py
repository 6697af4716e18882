"""Codecs live in a process of their own, the media worker.

PyAV is imported by `encoding`, `decoding` and `transcodes`, libopus by `opus`, and these only by `worker`. aiortc drags PyAV
into the gateway as a module; no codec runs there, and nothing else of ours may import it.
"""

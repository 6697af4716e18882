"""Codecs live in a process of their own: nothing here but `worker`, `encoding` and `decoding` may import PyAV."""

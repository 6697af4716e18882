"""What strangers send in place of a key, a token or an id."""

from hypothesis import strategies as st


def _long(part: str) -> str:
    return part * (1 << 20)


LONG = st.sampled_from(["a", "ak_", ".", "\0", "{", "ä", "\udcff"]).map(_long)
"""A megabyte and more."""
ODD = st.text("{}\0\n\r\t\"'/\\%._-=0123456789abcdefeakw", max_size=300)
"""Of characters that mean something to somebody."""
HOSTILE = st.one_of(st.text(), ODD, LONG)

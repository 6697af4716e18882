import pytest

from realtime.blank import is_blank


@pytest.mark.parametrize("text", ["", " \n\t", "\u200b", "\ufeff \u200d\u2060", "\x00"])
def test_nothing_to_read(text: str) -> None:
    assert is_blank(text)


@pytest.mark.parametrize("text", ["a", "\u200ba", " …", "你", "👩\u200d🚀"])
def test_something_to_read(text: str) -> None:
    assert not is_blank(text)

"""Pictures that are kept for a URL."""

from fakes.clock import Clock
from realtime.picture_links import LIFE_S, PATH, PictureLinks


def name(path: str) -> str:
    return path.removeprefix(PATH)


def test_a_picture_is_there_until_its_time_is_over() -> None:
    clock = Clock()
    links = PictureLinks("pic_2", clock)
    path = links.keep(b"png", "png")
    assert path.startswith("/pictures/pic_2_")
    assert path.endswith(".png")
    clock.now_s += LIFE_S - 1
    assert (kept := links.find(name(path))) is not None
    assert (kept.file, kept.format) == (b"png", "png")
    clock.now_s += 1
    assert links.find(name(path)) is None


def test_names_cannot_be_guessed() -> None:
    links = PictureLinks()
    names = {links.keep(b"", "png") for _ in range(1_000)}
    assert len(names) == 1_000
    assert {len(each) for each in names} == {len("/pictures/pic_.png") + 48}


def test_the_oldest_goes_when_there_are_too_many() -> None:
    links = PictureLinks(clock=Clock(), most_bytes=300)
    paths = [links.keep(bytes(100), "png") for _ in range(4)]
    assert [links.find(name(path)) is not None for path in paths] == [False, True, True, True]


def test_one_that_is_larger_than_all_room_is_not_kept() -> None:
    links = PictureLinks(clock=Clock(), most_bytes=300)
    assert links.find(name(links.keep(bytes(301), "png"))) is None

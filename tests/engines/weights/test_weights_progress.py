"""What is shown of downloads, by the clock."""

import io

from engines.weights.progress import Bar, Lines

MB = 1_000_000


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_nothing_is_said_of_what_is_done_at_once() -> None:
    out, clock = io.StringIO(), Clock()
    for shown in (Bar("voice", out, clock), Lines("voice", out, clock)):
        shown.at(MB, 4 * MB)
        shown.at(4 * MB, 4 * MB)
        shown.close()
    assert out.getvalue() == ""


def test_a_long_download_moves_a_bar_on_a_terminal() -> None:
    out, clock = io.StringIO(), Clock()
    bar = Bar("voice", out, clock)
    clock.now_s = 2.0
    for quarter in range(5):
        bar.at(quarter * MB, 4 * MB)
    bar.close()
    drawn = out.getvalue().split("\r")[1:]
    assert len(drawn) == 2, "once at first, once at the end; between them no time has passed"
    assert drawn[-1].endswith("━━ 4 of 4 MB\n")


def test_a_long_download_is_a_line_now_and_then_elsewhere() -> None:
    out, clock = io.StringIO(), Clock()
    lines = Lines("voice", out, clock)
    for second in range(14):
        clock.now_s = float(second)
        lines.at(second * MB, 20 * MB)
    assert out.getvalue().splitlines() == ["  voice: 2 of 20 MB", "  voice: 12 of 20 MB"]

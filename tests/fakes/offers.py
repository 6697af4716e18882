"""SDP offers: what Chromium 156 sends, stripped of all that identifies, and mutations of it."""

from pathlib import Path

from hypothesis import strategies as st

CHROMIUM = (Path(__file__).parent / "chromium_156_offer.sdp").read_bytes().decode()
_LINES = CHROMIUM.split("\r\n")


def _mutated(draw: st.DrawFn) -> str:
    lines = list(_LINES)
    for _ in range(draw(st.integers(1, 12))):
        place = draw(st.integers(0, len(lines) - 1))
        match draw(st.sampled_from(("drop", "double", "swap", "cut", "garble", "replace"))):
            case "drop":
                del lines[place]
                lines = lines or [""]
            case "double":
                lines.insert(place, draw(st.sampled_from(_LINES)))
            case "swap":
                other = draw(st.integers(0, len(lines) - 1))
                lines[place], lines[other] = lines[other], lines[place]
            case "cut":
                lines[place] = lines[place][: draw(st.integers(0, 40))]
            case "garble":
                words = lines[place].split(" ")
                words[draw(st.integers(0, len(words) - 1))] = draw(st.text(max_size=12) | st.integers().map(str))
                lines[place] = " ".join(words)
            case _:
                lines[place] = draw(st.sampled_from(("a=", "m=", "c=", "b=", ""))) + draw(st.text(max_size=30))
    return draw(st.sampled_from(("\r\n", "\n"))).join(lines)


mutated_offers = st.composite(_mutated)()
"""What a client might send that is nearly right."""

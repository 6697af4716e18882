import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.speakable import speakable

SAID = {
    "Hello **world**, this is *fine* and `x = 3`.": "Hello world, this is fine and x equals three.",
    "# Heading\n- first item\n- second **item**": "Heading. first item. second item.",
    "1. Boil water\n2. Stir": "one, Boil water. two, Stir.",
    "- [x] done\n- [ ] open": "done. open.",
    "> a quote\n\nand after": "a quote. and after",
    "| Name | Age |\n|------|-----|\n| Bob | 5 |": "Name, Age. Bob, five.",
    '```python\nprint("hi")\n```': 'print, "hi"',
    "Above\n\n---\n\nbelow": "Above. below",
    "See [the docs](https://docs.python.org/3/).": "See the docs.",
    "![a cat](cat.png) sleeps": "a cat sleeps",
    "Go to https://www.example.com/a/b?c=d.": "Go to example dot com.",
    "Mail joe.smith@example.com!": "Mail joe dot smith at example dot com!",
    "example.org, Node.js": "example dot org, Node dot js",
    "It costs $5.20, or €3.": "It costs five dollars and twenty cents, or three euros.",
    "$1,000.50 and $5 million": "one thousand dollars and fifty cents and five million dollars",
    "£0.99, $1, 3€, -$2": "ninety-nine pence, one dollar, three euros, minus two dollars",
    "$20-$30": "twenty dollars to thirty dollars",
    "2024-05-03": "May third, twenty twenty-four",
    "3 May 2024": "the third of May, twenty twenty-four",
    "May 3, 2024.": "May third, twenty twenty-four.",
    "5/3/2024": "May third, twenty twenty-four",
    "25/12/2024": "December twenty-fifth, twenty twenty-four",
    "99/99/2024": "ninety-nine slash ninety-nine slash two thousand and twenty-four",
    "7:30, 14:05, 7:00": "seven thirty, fourteen oh five, seven o'clock",
    "At 5 pm. Then": "At five p m. Then",
    "7:05 p.m. and 3 PM": "seven oh five p m and three p m",
    "25 °C, 5km, 1 km": "twenty-five degrees Celsius, five kilometers, one kilometer",
    "120 km/h": "one hundred and twenty kilometers per hour",
    "5 m², 3.5 GHz, 50%": "five square meters, three point five gigahertz, fifty percent",
    "In 1999 there were 1500 people.": "In nineteen ninety-nine there were one thousand five hundred people.",
    "The 1990s, since 2005": "The nineteen nineties, since two thousand five",
    "10-20, 1990–1995": "ten to twenty, nineteen ninety to nineteen ninety-five",
    "1st, 23rd": "first, twenty-third",
    "1/2 cup, 2 1/2, 24/7": "one half cup, two and a half, twenty-four seven",
    "Dr. Smith, e.g. apples": "Doctor Smith, for example apples",
    "apples, etc. We left.": "apples, et cetera. We left.",
    "A & B + C = D @ home": "A and B plus C equals D at home",
    "#5, C#, 3 × 4": "number five, C sharp, three times four",
    "x^2 and x < 5": "x squared and x less than five",
    "😀 Great job! 🎉👍🏽": "Great job!",
    "NASA, PCs, U.S., GPT-4": "NASA, PC's, U S, GPT four",
    "call 555-1234, 007": "call five five five, one two three four, zero zero seven",
    "1,234,567": "one million two hundred and thirty-four thousand five hundred and sixty-seven",
    "3.14": "three point one four",
    "v1.2.3 at -5": "v one point two point three at minus five",
    "well-known — really (maybe)": "well-known, really, maybe",
    " - 2 left": "two left",
}


@pytest.mark.parametrize(("written", "said"), SAID.items(), ids=SAID)
def test_written_becomes_said(written: str, said: str):
    assert speakable(written) == said


@pytest.mark.parametrize("text", ["", " ", "\n\n", "---", "***", "😀", "```", "| --- |", "!?"])
def test_nothing_to_say(text: str):
    assert speakable(text) == ""


@pytest.mark.parametrize(
    "text", ["-" * 3_000 + "x", "*_" * 1_500, "[" * 1_000, "1," * 1_000, "a." * 1_000, "9" * 1_000, "|" * 2_000, " >" * 999]
)
def test_hostile_text_takes_no_long_time(text: str):
    speakable(text)


MARKUP = st.text(alphabet=st.sampled_from("ab Z.,:;!?-–—*_`#|[]()<>$€%°^/\\@&+='\"0123456789\n"), max_size=60)


@given(MARKUP | st.text(max_size=60))
def test_any_text_becomes_one_line_without_digits_or_marks(text: str):
    said = speakable(text)
    assert not any(character in "0123456789*`#|[](){}<>\n" for character in said)
    assert said == said.strip()

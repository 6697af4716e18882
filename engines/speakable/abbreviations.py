"""Abbreviations that are written short and said long. Their dots end no sentence, which the cutting of clauses asks too."""

import re

ABBREVIATIONS = {
    "Dr.": "Doctor",
    "Mr.": "Mister",
    "Mrs.": "Missus",
    "Ms.": "Miss",
    "Prof.": "Professor",
    "St.": "Saint",
    "Jr.": "Junior",
    "Sr.": "Senior",
    "e.g.": "for example",
    "i.e.": "that is",
    "etc.": "et cetera",
    "vs.": "versus",
    "approx.": "approximately",
    "dept.": "department",
    "est.": "estimated",
    "Inc.": "Incorporated",
    "Ltd.": "Limited",
    "Co.": "Company",
    "cf.": "compare",
    "Fig.": "Figure",
    "fig.": "figure",
    "Vol.": "Volume",
    "vol.": "volume",
}
MAY_END_A_SENTENCE = ("etc.", "Inc.", "Ltd.", "Co.", "Jr.", "Sr.")

_ABBREVIATION = re.compile(r"(?<![\w.])(?:" + "|".join(map(re.escape, ABBREVIATIONS)) + r")(?P<ends>(?=\s+[A-Z]|\s*$))?")
_NUMBER = re.compile(r"\b[Nn]os?\. ?(?=[0-9])|#(?=[0-9])")
_LETTERS = re.compile(r"\b(?:[A-Za-z]\.){2,}")
_PLURAL = re.compile(r"\b([A-Z]{2,5})s\b")


def abbreviations_spoken(text: str) -> str:
    text = _NUMBER.sub("number ", text)
    text = _PLURAL.sub(r"\1's", text)
    text = _ABBREVIATION.sub(_long, text)
    # "U.S." is said letter by letter; "a.m." and "p.m." belong to their time.
    return _LETTERS.sub(lambda match: match[0] if match[0].lower() in ("a.m.", "p.m.") else match[0].replace(".", " "), text)


def _long(match: re.Match[str]) -> str:
    short = match[0]
    return ABBREVIATIONS[short] + ("." if match["ends"] is not None and short in MAY_END_A_SENTENCE else "")

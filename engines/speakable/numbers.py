"""Numbers as they are said: counts, years, dates, times, money, measures. English; plain words come from num2words.

Each rule is a pattern and what becomes of its match; they run in order, the special before the plain, and no digit is left.
"""

import re
from collections.abc import Callable
from typing import TypeAlias

from engines.speakable.measures import MEASURE_PATTERN, MEASURES
from engines.speakable.whole_numbers import digit_by_digit, ordinal, whole, year

Rule: TypeAlias = tuple[re.Pattern[str], Callable[[re.Match[str]], str]]

MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
CURRENCIES = {"$": ("dollar", "cent"), "€": ("euro", "cent"), "£": ("pound", "pence"), "¥": ("yen", ""), "₹": ("rupee", "paisa")}
MAGNITUDES = {"k": "thousand", "m": "million", "bn": "billion", "b": "billion", "tn": "trillion"}
YEAR_AFTER = (
    *("in", "since", "from", "until", "till", "by", "of", "year", "around", "during", "before", "after"),
    *("circa", "early", "late", "mid", "and", "to"),
)
"""Words behind which a four-digit number is a year even before a plural."""


_AMOUNT = r"(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?"
_MONTH = "(?P<month>" + "|".join(f"{month}|{month[:3]}\\.?" for month in MONTHS) + ")"
_SUFFIX = r"(?:st|nd|rd|th)?"
_NOT_INSIDE = r"(?<![\w.,])"


def numbers_spoken(text: str) -> str:
    """`text` with every digit said in words."""
    for pattern, said in RULES:
        text = pattern.sub(said, text)
    return text


def amount(written: str) -> str:
    """ "1,000.5" → "one thousand point five"."""
    integral, _, fraction = written.replace(",", "").partition(".")
    words = whole(integral) if integral else ""
    return f"{words} point {digit_by_digit(fraction)}".strip() if fraction else words


def _money(match: re.Match[str]) -> str:
    unit, cent = CURRENCIES[match["sign"]]
    magnitude = match["magnitude"] or ""
    if magnitude:
        return f" {amount(match['amount'])} {MAGNITUDES.get(magnitude.lower(), magnitude)} {_many(unit)} "
    integral, _, fraction = match["amount"].partition(".")
    if fraction and (len(fraction) > 2 or not cent):
        return f" {amount(match['amount'])} {_many(unit)} "
    units = integral.replace(",", "")
    spoken = f"{whole(units)} {unit if units == '1' else _many(unit)}"
    cents = int(fraction.ljust(2, "0") or 0)
    if not cents:
        return f" {spoken} "
    small = f"{whole(str(cents))} {cent if cents == 1 or cent == 'pence' else _many(cent)}"
    return f" {small} " if not int(units) else f" {spoken} and {small} "


def _many(unit: str) -> str:
    return unit if unit in ("yen", "paisa", "pence") else unit + "s"


def _month_day(month: int, day: int, in_year: str | None) -> str:
    spoken = f"{MONTHS[month - 1]} {ordinal(day)}"
    return f"{spoken}, {year(in_year)}" if in_year else spoken


def _iso_date(match: re.Match[str]) -> str:
    month, day = int(match["m"]), int(match["d"])
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return " ".join(whole(part) for part in (match["y"], match["m"], match["d"]))
    return _month_day(month, day, match["y"])


def _slashed_date(match: re.Match[str]) -> str:
    """Month first, as en-US writes it, unless that cannot be."""
    month, day = int(match["m"]), int(match["d"])
    if month > 12:
        month, day = day, month
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return " slash ".join(whole(part) for part in (match["m"], match["d"], match["y"]))
    return _month_day(month, day, match["y"])


def _month_number(name: str) -> int:
    return next(index for index, month in enumerate(MONTHS, 1) if month.startswith(name[:3]))


def _month_first(match: re.Match[str]) -> str:
    return _month_day(_month_number(match["month"]), int(match["d"]), match["y"])


def _day_first(match: re.Match[str]) -> str:
    spoken = f"the {ordinal(int(match['d']))} of {MONTHS[_month_number(match['month']) - 1]}"
    return f"{spoken}, {year(match['y'])}" if match["y"] else spoken


def _time(match: re.Match[str]) -> str:
    hour, minute, half = match["h"], match["min"], (match["half"] or "").lower()
    words = [whole(hour)]
    if minute and minute != "00":
        words.append(f"oh {whole(minute[1])}" if minute[0] == "0" else whole(minute))
    elif not half:
        words.append("o'clock" if 1 <= int(hour) <= 12 else "hundred")
    if match["s"]:
        words.append(f"and {whole(match['s'])} seconds")
    if half:
        words.append(f"{half[0]} m")
    return " ".join(words)


def _fraction(match: re.Match[str]) -> str:
    top, bottom = int(match["top"]), int(match["bottom"])
    if not 0 < top < bottom:
        return f"{whole(match['top'])} {whole(match['bottom'])}"
    part = {2: "half", 4: "quarter"}.get(bottom, ordinal(bottom))
    mixed = f"{whole(match['whole'])} and " if match["whole"] else ""
    article = "a" if mixed and top == 1 else whole(str(top))
    return f"{mixed}{article} {part if top == 1 else part + 's'}"


def _measure(match: re.Match[str]) -> str:
    one, many = MEASURES[match["unit"]]
    return f"{amount(match['amount'])} {one if match['amount'] == '1' else many}"


def _year_or_count(match: re.Match[str]) -> str:
    """A bare number from 1100 to 2099 is a year, unless it counts the plural that follows: "1500 people"."""
    number, before, after = match["number"], (match["before"] or "").strip().lower(), match["after"] or ""
    counts = after.endswith(("s", "people", "men", "women", "children")) and after not in ("is", "was", "as", "has", "its")
    spoken = whole(number) if counts and before not in YEAR_AFTER else year(number)
    return f"{match['before'] or ''}{spoken}"


def _year_or_amount(number: str) -> str:
    return year(number) if re.fullmatch(r"1[1-9][0-9]{2}|20[0-9]{2}", number) else amount(number)


def _rule(pattern: str, said: Callable[[re.Match[str]], str], *, ignore_case: bool = False) -> Rule:
    return re.compile(pattern, re.IGNORECASE if ignore_case else 0), said


_TIME_OF_DAY = r"(?P<h>[01]?[0-9]|2[0-4])"
_HALF = r"(?P<half>[ap]\.?m(?:\.(?=\s+(?-i:[a-z]))|\b))"

RULES: tuple[Rule, ...] = (
    _rule(_NOT_INSIDE + r"(?P<y>[0-9]{4})-(?P<m>[0-9]{2})-(?P<d>[0-9]{2})(?![\w-])", _iso_date),
    _rule(_NOT_INSIDE + r"(?P<m>[0-9]{1,2})/(?P<d>[0-9]{1,2})/(?P<y>[0-9]{4})(?![\w/])", _slashed_date),
    _rule(rf"\b(?P<d>[0-3]?[0-9]){_SUFFIX} (?:of )?{_MONTH}(?:,? (?P<y>[12][0-9]{{3}}))?(?!\w)", _day_first),
    _rule(rf"\b{_MONTH} (?P<d>[0-3]?[0-9]){_SUFFIX}(?:,? (?P<y>[12][0-9]{{3}}))?(?![\w:]|[.,][0-9])", _month_first),
    _rule(
        rf"{_NOT_INSIDE}{_TIME_OF_DAY}:(?P<min>[0-5][0-9])(?::(?P<s>[0-5][0-9]))?(?:\s?{_HALF})?(?![\w:])",
        _time,
        ignore_case=True,
    ),
    _rule(rf"{_NOT_INSIDE}(?P<h>1?[0-9])(?P<min>)(?P<s>)\s?{_HALF}(?!\w)", _time, ignore_case=True),
    _rule(
        r"(?<![\w-])(?:\+[0-9]{1,3}[ -])?\(?[0-9]{3}\)?[ -][0-9]{3}[ -][0-9]{4}(?![\w-])",
        lambda m: digit_by_digit(m[0], pauses=True),
    ),
    _rule(r"(?<![\w-])[0-9]{3}-[0-9]{4}(?![\w-])", lambda m: digit_by_digit(m[0], pauses=True)),
    _rule(r"(?<=[0-9])\s?[-–—]\s?(?=[$€£¥₹][0-9])", lambda m: " to "),
    _rule(r"(?<![\w)])[-−](?=[$€£¥₹])", lambda m: "minus "),
    _rule(
        rf"(?P<sign>[$€£¥₹])\s?(?P<amount>{_AMOUNT})(?:\s?(?P<magnitude>thousand|million|billion|trillion|bn|tn|[kmb])\b)?",
        _money,
        ignore_case=True,
    ),
    _rule(rf"(?P<amount>{_AMOUNT})\s?(?P<sign>[€£])(?P<magnitude>)", _money),
    _rule(
        rf"{_NOT_INSIDE}(?P<from>{_AMOUNT})\s?[-–—]\s?(?={_AMOUNT}(?![-–—]?[0-9]))", lambda m: f"{_year_or_amount(m['from'])} to "
    ),
    _rule(r"\b(?P<y>(?:1[1-9]|20)[0-9]0)'?s\b", lambda m: _plural(year(m["y"]))),
    _rule(r"'?\b(?P<y>[2-9]0)s\b", lambda m: _plural(whole(m["y"]))),
    _rule(rf"(?P<amount>{_AMOUNT})\s?(?P<unit>{MEASURE_PATTERN})(?![\w^])", _measure),
    _rule(rf"(?P<amount>{_AMOUNT})\s?%", lambda m: f"{amount(m['amount'])} percent"),
    _rule(rf"(?P<amount>{_AMOUNT})k\b", lambda m: f"{amount(m['amount'])} thousand"),
    _rule(r"\b(?P<n>[0-9][0-9,]*)(?:st|nd|rd|th)\b", lambda m: ordinal(int(m["n"].replace(",", "")[:15]))),
    _rule(r"(?:(?P<whole>[0-9]{1,3}) )?(?<![\w./])(?P<top>[0-9]{1,2})[/⁄](?P<bottom>[0-9]{1,3})(?![\w/])", _fraction),
    _rule(r"(?<=[0-9])\s?[×*]\s?(?=[0-9])", lambda m: " times "),
    _rule(r"(?<=[0-9]):(?=[0-9])", lambda m: " to "),
    _rule(r"[0-9]+(?:\.[0-9]+){2,}", lambda m: f" {' point '.join(whole(part) for part in m[0].split('.'))} "),
    _rule(r"(?<![\w)])[-−](?=\.?[0-9])", lambda m: "minus "),
    _rule(
        r"(?P<before>\b[A-Za-z]+ )?(?<![\w.,$])(?P<number>1[1-9][0-9]{2}|20[0-9]{2})(?![\w%]|[.,][0-9])(?= (?P<after>[a-z]+))?",
        _year_or_count,
    ),
    _rule(r"(?<![0-9])\.[0-9]+", lambda m: f" point {digit_by_digit(m[0])}"),
    _rule(_AMOUNT, lambda m: f" {amount(m[0])} "),
)


def _plural(words: str) -> str:
    return words[:-1] + "ies" if words.endswith("y") else words + "s"

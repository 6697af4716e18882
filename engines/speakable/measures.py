"""Units as they are said, singular and plural. Only those that cannot be taken for a word behind a number ("5 in")."""

import re


def _metric(symbol: str, name: str, prefixes: dict[str, str]) -> dict[str, tuple[str, str]]:
    return {prefix + symbol: (said + name, said + name + "s") for prefix, said in prefixes.items()}


_LENGTHS = {"": "", "k": "kilo", "c": "centi", "m": "milli", "µ": "micro", "μ": "micro", "n": "nano"}
_MASSES = {"": "", "k": "kilo", "m": "milli", "µ": "micro", "μ": "micro"}
_LARGE = {"k": "kilo", "K": "kilo", "M": "mega", "G": "giga", "T": "tera"}

MEASURES: dict[str, tuple[str, str]] = {
    **_metric("m", "meter", _LENGTHS),
    **{f"{symbol}^2": (f"square {one}", f"square {many}") for symbol, (one, many) in _metric("m", "meter", _LENGTHS).items()},
    **{f"{symbol}^3": (f"cubic {one}", f"cubic {many}") for symbol, (one, many) in _metric("m", "meter", _LENGTHS).items()},
    **_metric("g", "gram", _MASSES),
    **_metric("L", "liter", {"": "", "m": "milli"}),
    **_metric("l", "liter", {"": "", "m": "milli"}),
    **_metric("B", "byte", _LARGE),
    **_metric("W", "watt", {"": "", **_LARGE}),
    **_metric("Wh", "watt hour", {"": "", **_LARGE}),
    **_metric("V", "volt", {"": "", "k": "kilo"}),
    **_metric("s", "second", {"": "", "m": "milli", "µ": "micro", "μ": "micro", "n": "nano"}),
    **{
        symbol: (f"{said}hertz", f"{said}hertz")
        for symbol, said in {"Hz": "", "kHz": "kilo", "MHz": "mega", "GHz": "giga"}.items()
    },
    "°C": ("degree Celsius", "degrees Celsius"),
    "°F": ("degree Fahrenheit", "degrees Fahrenheit"),
    "°": ("degree", "degrees"),
    "km/h": ("kilometer per hour", "kilometers per hour"),
    "m/s": ("meter per second", "meters per second"),
    "mph": ("mile per hour", "miles per hour"),
    "mi": ("mile", "miles"),
    "ft": ("foot", "feet"),
    "yd": ("yard", "yards"),
    "lb": ("pound", "pounds"),
    "lbs": ("pound", "pounds"),
    "oz": ("ounce", "ounces"),
    "min": ("minute", "minutes"),
    "h": ("hour", "hours"),
    "hr": ("hour", "hours"),
    "hrs": ("hour", "hours"),
}

MEASURE_PATTERN = "|".join(re.escape(symbol) for symbol in sorted(MEASURES, key=len, reverse=True))

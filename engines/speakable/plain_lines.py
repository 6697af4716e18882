"""Markdown without its marks: the words of each line, with the pause that its layout stands for."""

import re

_FENCE = re.compile(r"\s*(?:```|~~~)")
_RULE = re.compile(r"\s*(?:[-*_=]\s*){3,}$")
_TABLE_RULE = re.compile(r"[\s|:-]*--[\s|:-]*$")
_TABLE_ROW = re.compile(r"\s*\|(.*?)\|?\s*$")
_BLOCK = re.compile(
    r"(?:\s*>)*\s*(?:(?P<heading>#{1,6})\s+|(?P<bullet>[-*+•‣◦])\s+(?:\[[ xX]\]\s+)?|(?P<number>[0-9]{1,3})[.)]\s+)?"
)
_END_MARK = re.compile(r"[.,;:!?…]['\")\]*_`]*$")

_LINK = re.compile(r"!?\[(?P<text>[^\]\n]*)\]\([^)\n]*\)")
_INLINE: tuple[tuple[re.Pattern[str], str], ...] = (
    (_LINK, r"\g<text>"),
    (re.compile(r"\[\^[^\]\s]{1,20}\]"), ""),
    (re.compile(r"\[(?P<text>[^\]\n]+)\]\[[^\]\n]*\]"), r"\g<text>"),
    (re.compile(r"<(?P<url>https?://[^>\s]+)>"), r"\g<url>"),
    (re.compile(r"</?[A-Za-z][^<>\n]{0,200}>"), " "),
    (re.compile(r"\\(?=[*_`#\[\]()~>|\\-])"), ""),
    (re.compile(r"`+"), ""),
    (re.compile(r"\*{2,}|_{2,}|~{2,}"), ""),
    (re.compile(r"(?<!\w)[*_](?=\S)|(?<=\S)[*_](?!\w)"), ""),
)


def plain_lines(text: str) -> str:
    """All lines as one; headings, list items, table rows and paragraphs end with a full stop when they have no mark of their own.

    A span that was cut out of a line starts with that line's space, so its first characters are no list mark.
    """
    spoken: list[str] = []
    for index, line in enumerate(text.split("\n")):
        if _FENCE.match(line) or _RULE.match(line) or _TABLE_RULE.match(line):
            continue
        if not line.strip():
            _end(spoken)
            continue
        inside = index == 0 and line[0] == " "
        words, is_block = (_inline(line), False) if inside else _line(line)
        if is_block:
            _end(spoken)
        spoken.append(words.strip())
        if is_block and "\n" in text:
            _end(spoken)
    return " ".join(spoken)


def _line(line: str) -> tuple[str, bool]:
    """Its words, and whether it stands alone."""
    if row := _TABLE_ROW.match(line):
        return ", ".join(cell.strip() for cell in _inline(row[1]).split("|")), True
    block = _BLOCK.match(line)
    if block is None or block.lastgroup is None:
        return _inline(line if block is None else line[block.end() :]), False
    number = f"{block['number']}, " if block["number"] else ""
    return number + _inline(line[block.end() :]), True


def _inline(words: str) -> str:
    for pattern, replacement in _INLINE:
        words = pattern.sub(replacement, words)
    return words


def _end(spoken: list[str]) -> None:
    if spoken and spoken[-1] and not _END_MARK.search(spoken[-1]):
        spoken[-1] += "."

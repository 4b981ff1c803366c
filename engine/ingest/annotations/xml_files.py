"""XML of annotations, without external entities and other unsafe features."""

from __future__ import annotations

import math
from xml.etree.ElementTree import Element, ParseError, TreeBuilder, XMLParser

from ..files import unreadable
from .format import UNPACKED, broken, plain


class _Refused(Exception):
    """A document type, which may have entities."""


class _Builder(TreeBuilder):
    """A tree of a document without a document type."""

    def doctype(self, name: str, public: str | None, system: str | None) -> None:
        raise _Refused


def read_tree(file: str, root: str) -> Element:
    """Return the root of an XML file."""
    parser = XMLParser(target=_Builder())
    try:
        with plain(file) as opened:
            while block := opened.read(1 << 20):
                parser.feed(block)
        tree: Element = parser.close()
    except UNPACKED as error:
        raise unreadable(file, error) from None
    except ParseError as error:
        reason = str(error).partition(":")[0]
        raise broken(file, error.position[0], f"broken XML ({reason})", "Write it again.") from None
    except (LookupError, ValueError) as error:  # an encoding that does not exist, or does not fit
        raise broken(file, None, f"broken XML ({error})", "Save it as UTF-8.") from None
    except _Refused:
        raise broken(
            file, None, "XML with a document type (<!DOCTYPE>), which is not read", "Take it out."
        ) from None
    if tree.tag != root:
        raise broken(file, None, f"its root is <{tree.tag}>, not <{root}>", "Give one format.")
    return tree


def text_in(element: Element, name: str) -> str | None:
    """The text of the first child of a name, without blanks around; None without any."""
    text = element.findtext(name)
    return (text.strip() or None) if text is not None else None


def number_of(element: Element, name: str, file: str) -> float | None:
    """Return the number in the first child of a name; None without that child."""
    text = text_in(element, name)
    return None if text is None else number(text, f"<{name}>", file)


def number(text: str, called: str, file: str) -> float:
    """Parse a finite number."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise broken(file, None, f"{called} is {text!r}, which is not a number", "Correct it.")
    return value


_LARGEST = 1 << 53


def whole(text: str, called: str, file: str) -> int:
    """Parse a whole number; decimals are truncated."""
    value = number(text, called, file)
    if abs(value) > _LARGEST:
        raise broken(file, None, f"{called} is {text!r}, which is too large", "Correct it.")
    return int(value)

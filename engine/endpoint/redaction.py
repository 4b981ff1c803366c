"""Keys: read from the environment, sent in one header, and taken out of everything else."""

from __future__ import annotations

import os
import re
from urllib.parse import urlsplit, urlunsplit

from ..schemas.errors import OptionError

KEY_VARIABLE = "OPENAI_API_KEY"
_LIKE_KEYS = re.compile(r"\b(?:sk|pk|key|gsk|hf)[-_][A-Za-z0-9_\-]{12,}|Bearer\s+\S+", re.I)
_HIDDEN = "[key]"


def key_from(variable: str) -> str | None:
    """Return the key in an environment variable; None if it is the default one and not set.

    Raises:
        OptionError: another variable that is not set; a key with characters that are invalid in a
            header.
    """
    key = os.environ.get(variable, "").strip()
    if not key and variable != KEY_VARIABLE:
        raise OptionError(
            f"api_key_env={variable!r}: this environment variable is not set. Set it, or leave the"
            f" option out for an endpoint without a key ({KEY_VARIABLE} is read if it is set).",
            code="variable_missing",
            value=variable,
        )
    if not key:
        return None
    if not key.isascii() or not key.isprintable() or " " in key:
        raise OptionError(
            f"the environment variable {variable} holds characters that no key has (spaces, line"
            " ends, letters beyond ASCII); was more copied into it than the key?",
            code="key_malformed",
            value=variable,
        )
    return key


def redacted(text: str, key: str | None) -> str:
    """Replace the key, and strings that look like keys, in a text."""
    if key:
        text = text.replace(key, _HIDDEN)
    return _LIKE_KEYS.sub(_HIDDEN, text)


def sound(text: str) -> str:
    """Replace lone surrogates, which JSON can contain and UTF-8 cannot."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def checked_url(base_url: str) -> str:
    """Return the endpoint without a trailing slash.

    Raises:
        OptionError: no http(s) address, or one with a user, password or query in it.
    """
    given = base_url.strip()
    try:
        parts = urlsplit(given)
        known = parts.scheme in ("http", "https") and bool(parts.hostname)
        known = known and (parts.port is None or parts.port > 0)
    except ValueError:  # a port or an IPv6 address that is none
        known = False
    if not known or any(letter.isspace() or not letter.isprintable() for letter in given):
        # Do not repeat an address that may contain a password.
        shown = "" if set("@?#") & set(given) else f"={redacted(given, None)!r}"
        raise OptionError(
            f"base_url{shown}: no address; write one such as http://localhost:8000/v1.",
            code="option_value",
            option="base_url",
        )
    if parts.username or parts.password or parts.query or parts.fragment:
        raise OptionError(
            "base_url holds a user, password or query. Keys come from the environment variable"
            " that api_key_env names; write the plain address alone.",
            code="secret_in_address",
            option="base_url",
        )
    return urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/"), "", ""))

"""Texts that were decoded with the wrong encoding, repaired: mojibake such as ``cafÃ©`` for ``café``.

UTF-8 that was read as Windows-1252 shows every character beyond ASCII as two to four others. Where these, written
as bytes again, are UTF-8, they are taken for the character that they encode. Sequences that people also write on
purpose, such as the end of ``«LIBERTÉ»``, are left alone.
"""

from __future__ import annotations

import html
import re

PASSES = 3
"""How often a text may have been decoded or escaped wrongly, one time on top of the other."""

_BYTES = {bytes([k]).decode("cp1252", "ignore") or chr(k): k for k in range(0x80, 0xC0)}  # it lacks five of them
_BYTES |= {chr(k): k for k in range(0x80, 0x100)}  # and some programs read Latin-1
_NEXT = f"[{re.escape(''.join(character for character, byte in _BYTES.items() if byte < 0xC0))}]"
_AFTER_CAPITAL = "(?<=[A-Z\u00c0-\u00de])[\u00c2\u00c3][\u2019\u201d\u203a\u2026\u00bb\u00a0]"  # the end of «SÃ»
_WRONG = re.compile(
    rf"(?<![A-Z\u00c0-\u00de]{{2}})(?!{_AFTER_CAPITAL})[\u00c2\u00c3]{_NEXT}"  # letters of Western Europe
    rf"|[\u00e2\u00ef]{_NEXT}{{2}}|\u00f0[\u0178\u009f]{_NEXT}{{2}}"  # punctuation and signs; emoji
    rf"|(?<=[\u00a2\u00ac\u00b0\u00b8])\u00c5{_NEXT}"  # both, the second time
)
_APOSTROPHE = re.compile(r"(?<=[^\W\d_])\ufffd{1,3}(?=(?:t|s|d|m|re|ve|ll)\b)", re.IGNORECASE)


def repair(text: str) -> str:
    r"""The text as it was written: mojibake and HTML entities undone, and lost characters dropped.

    A lost character, U+FFFD, is an apostrophe where English has one, and else parts words.

    >>> ascii(repair("We donâ€™t agree &amp;amp; won\ufffdt, says JosÃ©"))
    "'We don\\u2019t agree & won\\u2019t, says Jos\\xe9'"
    """
    for _ in range(PASSES):
        before, text = text, html.unescape(text)
        if not text.isascii():
            text = _WRONG.sub(_decoded, text)
        if text == before:
            break
    return _APOSTROPHE.sub("\u2019", text).replace("\ufffd", " ") if "\ufffd" in text else text


def _decoded(wrong: re.Match[str]) -> str:
    try:
        return bytes(_BYTES[character] for character in wrong[0]).decode()
    except UnicodeDecodeError:
        return wrong[0]


def windows_1252(error: UnicodeError) -> tuple[str, int]:
    r"""A codec's error handler: bytes that are not UTF-8 are of a program that writes Windows-1252.

    >>> import codecs
    >>> codecs.register_error("ocelad.windows-1252", windows_1252)
    >>> b"caf\xe9 \xe2\x80\x9cyes\xe2\x80\x9d \x80".decode("utf-8", "ocelad.windows-1252")
    'café “yes” €'
    """
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return error.object[error.start : error.end].decode("cp1252", "replace"), error.end

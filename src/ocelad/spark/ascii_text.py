"""Bytes as ASCII text, eight characters for seven bytes.

Spark hands the value of a state to Python as a pickle, and spends ten times as long on bytes as on ASCII, in Java
as in Python. Of every byte the lower seven bits are a character; the eighth bits of seven bytes, k places apart,
are another one:

    text = padding, b_1 mod 128, ..., b_7k mod 128, then c_1, ..., c_k,      c_j = sum_i 2^i (b_(ik + j) div 128).
"""

from __future__ import annotations

import numpy as np


def to_text(data: bytes) -> str:
    """Data as ASCII.

    >>> [ord(character) for character in to_text(b"\\x01\\xff")]
    [5, 1, 127, 0, 0, 0, 0, 0, 2]
    """
    k = -(-len(data) // 7)
    padded = np.zeros((7, k), dtype=np.uint8)
    padded.reshape(-1)[: len(data)] = np.frombuffer(data, dtype=np.uint8)
    text = np.zeros(1 + 8 * k, dtype=np.uint8)
    text[0] = 7 * k - len(data)
    text[1 : 1 + 7 * k] = padded.reshape(-1) & 127
    for i in range(7):
        text[1 + 7 * k :] |= padded[i] >> 7 << i
    return text.tobytes().decode("ascii")


def from_text(text: str) -> bytes:
    """The data again.

    >>> from_text(to_text(bytes(range(256)))) == bytes(range(256))
    True
    """
    given = np.frombuffer(text.encode("ascii"), dtype=np.uint8)
    k, rest = divmod(len(given) - 1, 8)
    if rest or given[0] >= 7:
        raise ValueError("it is not text that bytes were made into")
    low, high = given[1 : 1 + 7 * k].reshape(7, k), given[1 + 7 * k :]
    data = np.empty((7, k), dtype=np.uint8)
    for i in range(7):
        np.bitwise_or(low[i], (high >> i) << 7, out=data[i])
    return data.reshape(-1)[: 7 * k - int(given[0])].tobytes()

"""A few numbers for each image: the principal components of small copies of them all.

x = a (copy - mean) V, a such that the mean of |x - z|^2 over pairs is 1, V the first right singular vectors.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..protocols import Array

SIZE = 16
MOST = 64
PIXELS = 100_000_000
"""Images with more are refused before they are unpacked: a small file can claim any size."""

FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "BMP")


def image_features(folder: str, images: Sequence[str]) -> Array:
    """At most 64 principal components of copies of 16 x 16 pixels in three colours."""
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError(
            'features of images need Pillow: pip install "ocelad[serve]"; or give your own: --points FILE.npy'
        ) from error
    rows = np.empty((len(images), SIZE * SIZE * 3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of damaged metadata; sizes are checked here
        for row, name in zip(rows, images, strict=True):
            path = os.path.join(folder, name)
            try:
                with Image.open(path, formats=FORMATS) as image:
                    row[:] = np.asarray(_small(image), dtype=np.float64).ravel()
            except Exception as error:  # decoders raise nearly anything, as SyntaxError and struct.error
                said = str(error).replace("\n", " ") or type(error).__name__
                raise ValueError(f"{path}: the image cannot be read: {said}") from None
    if not np.any(rows != rows[0]):
        raise ValueError(
            f"{folder}: all images look the same at {SIZE} x {SIZE} pixels: --points FILE.npy gives features"
        )
    return principal_components(rows)


def _small(image: Any) -> Any:
    from PIL import Image, ImageOps

    if image.width * image.height > PIXELS:
        raise ValueError(f"it has {image.width} x {image.height} pixels, more than {PIXELS:,}")
    image.draft("RGB", (4 * SIZE, 4 * SIZE))  # JPEG can be unpacked small
    if image.mode.startswith("I"):  # sixteen bits, of which a conversion would cut off the upper ones
        image = image.convert("I").point(lambda value: value * (1 / 256)).convert("L")
    image = ImageOps.exif_transpose(image).convert("RGBA")  # as a browser turns it
    image = image.resize((SIZE, SIZE), Image.Resampling.BOX, reducing_gap=2.0)
    white = Image.new("RGBA", image.size, "white")
    return Image.alpha_composite(white, image).convert("RGB")


def principal_components(rows: Array, most: int = MOST) -> Array:
    """The first principal components of the rows, such that the mean of |x - z|^2 over pairs is 1.

    The largest entry of each direction is positive, so that the same rows give the same components.
    """
    centred = rows - rows.mean(axis=0)
    spread, directions = np.linalg.eigh(centred.T @ centred)
    kept = np.flatnonzero(spread > 1e-10 * spread[-1])[::-1][:most]
    directions = directions[:, kept]
    largest = np.abs(directions).argmax(axis=0)
    directions *= np.sign(directions[largest, np.arange(len(kept))])
    x = centred @ directions
    return x / np.sqrt(2 * np.mean(np.sum(x * x, axis=1)))

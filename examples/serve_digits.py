"""Digits to label in the browser: images for ``ocelad serve``, and points from which parity can be learned.

    python examples/serve_digits.py [FOLDER]
    ocelad serve digits/ --points digits.npy

There are 300 of scikit-learn's handwritten digits, 0 to 5, as the map of the page has six colours. A linear map of
their pixels hardly brings even digits together, and odd ones, for they look nothing like each other. One of their
Nystroem features does: these tell how near a digit is to each of 100 others.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from sklearn.datasets import load_digits
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics.pairwise import euclidean_distances

Array = NDArray[np.float64]
COUNT = 300
DIGITS = 6


def features(X: Array) -> Array:
    """Nystroem features for a Gaussian kernel, as wide as the median distance of two digits."""
    squares = euclidean_distances(X, squared=True)[np.triu_indices(len(X), 1)]
    kernel = Nystroem(gamma=1 / np.median(squares), n_components=100, random_state=0)
    return np.asarray(kernel.fit_transform(X))


def main() -> None:
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "")
    X, digits = load_digits(return_X_y=True)
    few = np.flatnonzero(digits < DIGITS)[:COUNT]
    X, digits = X[few] / 16, digits[few]
    names = [f"{digit}/{k:04d}.png" for k, digit in zip(few, digits, strict=True)]
    for name, x in zip(names, X, strict=True):
        path = target / "digits" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.uint8(255 * (1 - x.reshape(8, 8)))).save(path)
    order = sorted(range(COUNT), key=names.__getitem__)  # in which the service reads images: a row for each
    np.save(target / "digits.npy", features(X)[order])
    print(f"{COUNT} digits. Compare them in the browser:")
    print(f"ocelad serve {target / 'digits'} --points {target / 'digits.npy'}")


if __name__ == "__main__":
    main()

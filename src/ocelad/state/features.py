"""What stands between points and a tracker, in a file: known transformers by parts, all else by its name.

    {"part": "PCA", "n": 4, "names": null, "layout": {"components": ["F", false, 2]}, ...}, and arrays;
    {"function": "encode"},                                    which whoever reads the file has to give to `load`.

Of a transformer a file holds what its ``transform`` needs: a few options and the fitted arrays. When it is read, a
new one is made and given these.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..protocols import is_number
from .container import Arrays
from .header import check_keys, check_names, fits

PREFIX = "features."
LONGEST = 200
"""Letters of the name of a function."""

Entry = dict[str, Any]


@dataclass(frozen=True)
class Kind:
    """A class of transformers: what ``transform`` reads of one."""

    module: str
    arrays: dict[str, str]  # fitted attributes, without the _ at the end: an axis of n features, or of k outputs
    options: tuple[str, ...] = ()
    only_with: dict[str, str] = field(default_factory=dict)  # the option without which an array is not read

    def needed(self, entry: Entry) -> list[str]:
        return [name for name in self.arrays if entry.get(self.only_with.get(name, ""), True)]

    def outputs(self, arrays: Arrays, n: int) -> int:
        """k, of the first array that should have such an axis, 0 if it has not; without one, n."""
        for name, axes in self.arrays.items():
            if "k" in axes:
                return arrays[name].shape[axes.index("k")] if arrays[name].ndim == len(axes) else 0
        return n


KINDS = {
    "StandardScaler": Kind(
        "sklearn.preprocessing",
        {"mean": "n", "scale": "n"},
        ("with_mean", "with_std"),
        {"mean": "with_mean", "scale": "with_std"},
    ),
    "Nystroem": Kind("sklearn.kernel_approximation", {"components": "kn", "normalization": "kk"}, ("gamma",)),
    "RBFSampler": Kind("sklearn.kernel_approximation", {"random_weights": "nk", "random_offset": "k"}),
    "PCA": Kind(
        "sklearn.decomposition",
        {"mean": "n", "components": "kn", "explained_variance": "k"},
        ("whiten",),
        {"explained_variance": "whiten"},
    ),
}
"""The transformers that are saved by parts. Nothing in a file is ever looked up outside this list."""


@dataclass(frozen=True)
class Unsaved:
    """A function, or another transformer, of which a file has the name alone."""

    name: str

    def __repr__(self) -> str:
        return f"function {self.name}, which is not in the file"

    def __call__(self, *_: Any) -> Any:
        raise ValueError(f"features is the {self!r}: give it to load, load(path, features=...)")


def as_saved(points: Any) -> Any:
    """Given as ``features`` to `load`: leave them as they are in the file, even where that has but their name."""
    raise ValueError(f"as_saved stands for what is in a file, and knows nothing of {points!r}")


def chosen(saved: Any, given: Any) -> Any:
    """The features of a tracker that is read: those that are given, or those of the file."""
    if given is as_saved or (given is None and not isinstance(saved, Unsaved)):
        return saved
    if given is None:
        raise ValueError(
            f"its features are the function {saved.name}, and a file does not hold functions: give it, "
            "load(path, features=...)"
        )
    if saved is None:
        raise ValueError(f"features must be None, for it was saved without any, got {given!r}")
    return given


def describe(given: Any) -> tuple[Entry, Arrays]:
    """The entry of an option ``features`` that is not None, and the arrays that go with it."""
    kind = _kind(given)
    if kind is None:
        name = given.name if isinstance(given, Unsaved) else getattr(given, "__qualname__", type(given).__name__)
        return {"function": str(name)[:LONGEST]}, {}
    names = getattr(given, "feature_names_in_", None)
    entry: Entry = {"part": type(given).__name__, "n": int(given.n_features_in_)}
    entry["names"] = None if names is None else [str(name) for name in names]
    for option in kind.options:
        value = getattr(given, option)
        entry[option] = float(value) if is_number(value) else value
    arrays = {name: np.asarray(getattr(given, f"{name}_")) for name in kind.needed(entry)}
    entry["layout"] = {name: _layout(array) for name, array in arrays.items() if array.ndim == 2}
    return entry, {PREFIX + name: array for name, array in arrays.items()}


def _layout(array: np.ndarray[Any, Any]) -> list[Any]:
    """How a matrix lies in memory: row after row or column after column ("C", "F"), whether from the last row on,
    and how many numbers apart. It matters: products with it are rounded accordingly."""
    if array.flags.c_contiguous or min(array.shape) == 1:
        return ["C", False, array.shape[1]]
    down, across = (stride // array.itemsize for stride in array.strides)
    return ["F" if abs(down) < across else "C", down < 0, max(abs(down), across)]


def _laid_out(array: np.ndarray[Any, Any], layout: list[Any]) -> np.ndarray[Any, Any]:
    """A copy that lies so."""
    order, backwards, apart = layout
    inner, outer = array.shape[:: -1 if order == "C" else 1]
    view = np.zeros((outer, apart), array.dtype)[:, :inner]
    view = (view if order == "C" else view.T)[:: -1 if backwards else 1]
    view[...] = array
    return view


def _kind(given: Any) -> Kind | None:
    """How to save this by parts, if it can be: a fitted transformer whose outputs these parts determine."""
    kind = KINDS.get(type(given).__name__)
    if kind is None or type(given) is not getattr(import_module(kind.module), type(given).__name__):
        return None
    check_is_fitted(given)
    name = type(given).__name__
    if name == "Nystroem" and (given.kernel != "rbf" or given.kernel_params is not None):
        return None
    if name == "RBFSampler" and given.n_components != len(given.random_offset_):  # changed since the fit
        return None
    return kind


def check(given: Any, n: int) -> int | None:
    """The number of features that points must have for a tracker of n; None if that is not known."""
    kind = None if given is None else _kind(given)
    if kind is None:
        return n if given is None else None
    arrays = {name: np.asarray(getattr(given, f"{name}_")) for name in kind.arrays if hasattr(given, f"{name}_")}
    found, own = kind.outputs(arrays, given.n_features_in_), int(given.n_features_in_)
    if found != n:
        raise ValueError(f"features give {found} numbers for a point, and the tracker has {n} features")
    return own


def read(entry: Any) -> Unsaved | None:
    """Check the entry of features: what it stands for if that is not in the file, None if it is made of arrays."""
    if isinstance(entry, dict) and entry.keys() == {"function"}:
        name = entry["function"]
        if not isinstance(name, str) or len(name) > LONGEST:
            raise ValueError(f"features must name their function in at most {LONGEST} letters")
        return Unsaved(name)
    kind = KINDS.get(entry["part"]) if isinstance(entry, dict) and isinstance(entry.get("part"), str) else None
    if kind is None:
        raise ValueError("features must be a transformer that is known here, or name a function")
    check_keys(entry, {"part", "n", "names", "layout", *kind.options})
    if type(entry["n"]) is not int or not 1 <= entry["n"] < 2**40:
        raise ValueError(f"features must have a number of features, got {entry['n']!r}")
    check_names(entry["names"], entry["n"])
    for option in kind.options:
        value = entry[option]
        number = value is None or (type(value) is float and 0.0 <= value < math.inf)
        if not (number if option == "gamma" else type(value) is bool):
            raise ValueError(f"features have an option {option} that cannot be, {value!r}")
    matrices = {name for name in kind.needed(entry) if len(kind.arrays[name]) == 2}
    check_keys(entry["layout"], matrices)
    for layout in entry["layout"].values():
        if not fits(layout, [str, bool, int]) or layout[0] not in ("C", "F") or not 1 <= layout[2] < 2**40:
            raise ValueError(f"features have a layout that cannot be, {layout!r}")
    return None


def held(arrays: Arrays) -> int:
    """Bytes that the arrays of options take; of a matrix with gaps, all."""
    return sum(array.nbytes if array.base is None else array.base.nbytes for array in arrays.values())


def names_of_arrays(entry: Entry) -> list[str]:
    return [PREFIX + name for name in KINDS[entry["part"]].needed(entry)]


def restored(entry: Entry, arrays: Arrays, limit: float = math.inf) -> tuple[Any, Arrays]:
    """The transformer of an entry that has been checked, and its arrays, which are checked here."""
    kind, n = KINDS[entry["part"]], entry["n"]
    found = {name: arrays.get(PREFIX + name, np.zeros(())) for name in kind.needed(entry)}
    k = kind.outputs(found, n)
    if not k:
        raise ValueError(f"features must be a {entry['part']} with at least one output")
    for name, array in found.items():
        shape = tuple({"n": n, "k": k}[axis] for axis in kind.arrays[name])
        if array.shape != shape or array.dtype not in (np.float64, np.float32):
            raise ValueError(f"{PREFIX}{name} must be floats of shape {shape}")
        if not np.isfinite(array).all():
            raise ValueError(f"{PREFIX}{name} must be finite")
        if (name == "scale" and not (array > 0.0).all()) or (name == "explained_variance" and (array < 0.0).any()):
            raise ValueError(f"{PREFIX}{name} must be positive")
        if array.ndim < 2:
            found[name] = array.copy()
            continue
        order, _, apart = layout = entry["layout"][name]
        inner, outer = shape[:: -1 if order == "C" else 1]
        if apart < inner or apart * outer * array.itemsize > limit:
            raise ValueError(f"{PREFIX}{name} must lie in memory without gaps, or within {limit} bytes")
        found[name] = _laid_out(array, layout)
        if _layout(found[name]) != layout:
            raise ValueError(f"{PREFIX}{name} has a layout {layout} that says the same as another")
    parameters = {option: entry[option] for option in kind.options}
    if any("k" in axes for axes in kind.arrays.values()):
        parameters["n_components"] = k
    made = getattr(import_module(kind.module), entry["part"])(**parameters)
    made.n_features_in_ = n
    if entry["names"] is not None:
        made.feature_names_in_ = np.array(entry["names"], dtype=object)
    for name in kind.arrays:
        setattr(made, f"{name}_", found.get(name))
    return made, {PREFIX + name: array for name, array in found.items()}

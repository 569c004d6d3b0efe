"""Which of these questions ask the same? A sentence encoder stands between texts and tracker.

    python examples/encoder.py [name of a sentence-transformers model, or its folder]

With sentence-transformers and a model on this machine (nothing is downloaded), its ``encode`` is the encoder; else
TF-IDF and a truncated SVD of scikit-learn's are. Any function from texts to rows of numbers will do.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline

import ocelad

MODEL = "sentence-transformers/all-MiniLM-L6-v2"
OPENINGS = ("how do I", "please tell me how to", "what is the way to", "could you help me to", "I want to")
THINGS = ("invoice", "password", "order", "address", "subscription")
ACTIONS = {
    "cancel": ("cancel my {}", "stop the {}", "call off the {}"),
    "change": ("change my {}", "edit the {}", "replace the {}"),
    "find": ("find my {}", "look up the {}", "see the {}"),
}
STEPS = 1500


def questions() -> tuple[list[str], Any, Any]:
    """All questions, what each wants to do, and with what."""
    all_of_them = [
        (f"{opening} {phrase.format(thing)}?", action, thing)
        for opening in OPENINGS
        for thing in THINGS
        for action, phrases in ACTIONS.items()
        for phrase in phrases
    ]
    texts, actions, things = zip(*all_of_them, strict=True)
    return list(texts), np.array(actions), np.array(things)


def encoder(texts: list[str], name: str) -> tuple[Callable[[Any], Any], str]:
    """A function from texts to rows of numbers, and what it is."""
    os.environ["HF_HUB_OFFLINE"] = "1"  # only what is on this machine
    try:
        from sentence_transformers import SentenceTransformer

        model: Any = SentenceTransformer(name)
    except ImportError:
        why = "sentence-transformers is not installed"
    except Exception as error:  # which one depends on what is missing
        why = f"the model {name} cannot be loaded without a network ({type(error).__name__})"
    else:
        return lambda texts: model.encode(list(texts)), name
    print(f"{why}: TF-IDF and a truncated SVD take its place")
    made = make_pipeline(TfidfVectorizer(), TruncatedSVD(24, random_state=0)).fit(texts)
    return made.transform, "TF-IDF and SVD"


def main() -> None:
    texts, actions, things = questions()
    encode, name = encoder(texts, sys.argv[1] if len(sys.argv) > 1 else MODEL)
    rng = np.random.default_rng(0)
    tracker = ocelad.MetricTracker(features=encode)
    for notion, labels in (("are about the same thing", things), ("want the same done", actions)):
        pairs = rng.integers(len(texts), size=(STEPS, 2))
        y = np.where(labels[pairs[:, 0]] == labels[pairs[:, 1]], 1, -1)
        right = []
        for block in np.array_split(np.arange(STEPS), 30):
            asked = np.array(texts)[pairs[block]]  # texts, not numbers
            if notion != "are about the same thing" or block[0]:
                right.append(np.mean(tracker.predict(asked) == y[block]))  # predict, score ...
            tracker.partial_fit(asked, y[block])  # ... learn
        print(f"{name}: {notion}: right at first {np.mean(right[:5]):.2f}, at last {np.mean(right[-5:]):.2f}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tracker.ocelad"
        ocelad.save(tracker, path)  # what was learned; of the encoder, its name
        again = ocelad.load(path, features=encode)
    same = (again.transform(texts[:9]) == tracker.transform(texts[:9])).all()
    print(f"saved, and loaded with its encoder: the same coordinates: {bool(same)}")


if __name__ == "__main__":
    main()

"""A frozen network of torch's stands between images and tracker: what makes two digits alike, in its features?

    python examples/torch_encoder.py

The network learns to tell digits on half of the images and is then left as it is. The tracker learns from
comparisons of the others: two are alike if both are even or both are odd, which nobody has told the network. Needs
torch; without it, this says so and does nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.datasets import load_digits

from ocelad import MetricTracker
from ocelad.watch.prequential import progressive

STEPS = 1500


def frozen_network(X: Any, digits: Any, torch: Any) -> Any:
    """The hidden layers of a small network that tells these digits apart, as a function of images."""
    torch.manual_seed(0)
    hidden = torch.nn.Sequential(
        torch.nn.Unflatten(1, (1, 8, 8)),
        torch.nn.Conv2d(1, 16, 3, padding=1),
        torch.nn.ReLU(),
        torch.nn.MaxPool2d(2),
        torch.nn.Flatten(),
        torch.nn.Linear(256, 32),
        torch.nn.Tanh(),
    )
    network = torch.nn.Sequential(hidden, torch.nn.Linear(32, 10))
    images, targets = torch.tensor(X, dtype=torch.float32), torch.tensor(digits)
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
    for _ in range(60):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(network(images), targets).backward()
        optimizer.step()
    hidden.eval().requires_grad_(False)

    def features(points: Any) -> Any:
        return hidden(torch.tensor(np.asarray(points), dtype=torch.float32)).numpy()

    return features


def main() -> None:
    try:
        import torch
    except ImportError:
        print("torch is not installed, and this example is about it: pip install torch")
        return
    X, digits = load_digits(return_X_y=True)
    X, half = X / 16.0, len(X) // 2
    features = frozen_network(X[:half], digits[:half], torch)
    rng = np.random.default_rng(0)
    pairs = rng.integers(half, len(X), size=(STEPS, 2))
    y = np.where(digits[pairs[:, 0]] % 2 == digits[pairs[:, 1]] % 2, 1, -1)
    for name, tracker in (
        ("pixels", MetricTracker()),
        ("features of the network", MetricTracker(features=features)),
    ):
        right = progressive(tracker, X[pairs], y).similar == (y > 0)
        print(
            f"{name}: right of the first 300 {right[:300].mean():.2f}, of the last 300 {right[-300:].mean():.2f}"
        )


if __name__ == "__main__":
    main()

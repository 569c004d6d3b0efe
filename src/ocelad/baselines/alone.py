"""A learner without company: whatever it loses, it has all the weight, and many comparisons take one call."""

from __future__ import annotations

from typing import Any

from ..engine.rows import dense_blocks
from ..ensemble import Pool
from ..geometry import MarginLoss, Metric, PairLoss
from ..interrupt import undivided
from ..ocelad import Ocelad
from ..protocols import Array
from ..weights import FixedShare

_BLOCK = 4096  # comparisons per call: Ctrl-C is heard in between


class Alone(Pool[Metric]):
    """A pool of one learner that has ``learn(u, y)``, its ``update`` for many comparisons."""

    def compiles(self, ocelad: Ocelad[Metric], loss: MarginLoss) -> bool:
        """Under fixed share nobody asks for its losses, but for the last."""
        self.loss = loss
        return type(ocelad.weights) is FixedShare and ocelad.order == "before"

    def run(self, ocelad: Ocelad[Metric], u: Any, y: Array) -> None:
        """Learn comparisons as ``ocelad.update`` would one by one."""
        learner: Any = self.learners[0]
        with undivided() as pause:
            for part, rows in dense_blocks(u):
                labels = y[part]
                for start in range(0, len(rows), _BLOCK):
                    stop = min(start + _BLOCK, len(rows)) - 1
                    learner.learn(rows[start:stop], labels[start:stop])
                    ocelad.t += stop - start
                    ocelad.update(PairLoss(rows[stop], int(labels[stop]), self.loss))
                    pause()

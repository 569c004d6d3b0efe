"""How well comparisons were foreseen, in the same words wherever it is printed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..watch.scores import Running


@dataclass(frozen=True)
class Measures:
    """Accuracy, beside that of always giving the more frequent label; the AUC, and how far it may be off; of
    probabilities, where they are known (else nan), log loss and expected calibration error."""

    accuracy: float
    majority: float
    auc: float
    log_loss: float
    calibration_error: float
    auc_error: float = math.nan

    @classmethod
    def of(cls, running: Running) -> Measures:
        """So far, in a stream."""
        return cls(
            running.accuracy, running.majority, running.auc, running.log_loss, running.calibration_error,
            running.auc_error,
        )  # fmt: skip

    @classmethod
    def exactly(cls, y: Any, scores: Any, predicted: Any, probabilities: Any = None) -> Measures:
        """Of all comparisons at once: labels, what rises with similarity, what was said, and how surely."""
        from sklearn.metrics import roc_auc_score  # half a second

        running = Running()
        squares = np.where(np.asarray(predicted) > 0, 0.0, 2.0)  # as if the threshold were 1
        running.add(squares, np.ones(len(squares)), np.zeros(len(squares)), y, probabilities)
        auc = float(roc_auc_score(y, scores)) if len(np.unique(y)) == 2 else math.nan
        return cls(running.accuracy, running.majority, auc, running.log_loss, running.calibration_error)

    def lines(self, after: str = "", digits: int = 4) -> list[str]:
        """A line, and one on probabilities if they are known; each ends with these words."""
        off = "" if not self.auc_error > 0.0 else f" (to within {self.auc_error:.0e})"
        accuracy = f"accuracy {self.accuracy:.{digits}f} ({self.majority:.{digits}f} by the more frequent label)"
        lines = [f"{accuracy}, AUC {auc_in_words(self.auc, digits)}{off}{after}"]
        if not math.isnan(self.log_loss):
            calibration = f"expected calibration error {self.calibration_error:.{digits}f}"
            lines.append(f"log loss {self.log_loss:.{digits}f}, {calibration}{after}")
        return lines

    def briefly(self) -> str:
        """For a line that keeps changing."""
        words = f"accuracy {self.accuracy:.3f} (majority {self.majority:.3f}), AUC {auc_in_words(self.auc, 3)}"
        if not math.isnan(self.log_loss):
            words += f", log loss {self.log_loss:.3f}, calibration error {self.calibration_error:.3f}"
        return words


def auc_in_words(auc: float, digits: int = 4) -> str:
    return "unknown (all y are the same)" if math.isnan(auc) else f"{auc:.{digits}f}"

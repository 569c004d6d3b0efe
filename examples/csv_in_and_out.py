"""From a CSV of labelled rows to predictions, coordinates and a score, for analysts who would rather not program.

    python examples/csv_in_and_out.py [folder]

The same three commands do it in a terminal. The rows are scikit-learn's breast cancer data: 30 measurements of
cell nuclei, on scales from 0.001 to 4000, and a diagnosis. Needs the extra `cli`.
"""

from __future__ import annotations

import csv
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer


def write(path: Path) -> None:
    """The table as somebody would have it: a header, a row for each patient, the label in the last column."""
    data = load_breast_cancer()
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow([*(name.replace(" ", "_") for name in data.feature_names), "diagnosis"])
        for row, label in zip(data.data.tolist(), data.target_names[data.target], strict=True):
            table.writerow([*row, label])


def ocelad(folder: Path, words: str) -> None:
    """Run a command in a folder, and show it."""
    print(f"$ ocelad {words}", flush=True)
    subprocess.run([sys.executable, "-m", "ocelad.cli", *words.split()], cwd=folder, check=True)


def read(path: Path) -> dict[str, list[str]]:
    """The columns of a CSV."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return {name: [row[name] for row in rows] for name in rows[0]}


def main() -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(sys.argv[1] if len(sys.argv) > 1 else temporary)
        folder.mkdir(parents=True, exist_ok=True)
        write(folder / "patients.csv")
        ocelad(folder, "track patients.csv --label diagnosis --out run")
        ocelad(folder, "embed run patients.csv --dimensions 2 --out map.csv")
        ocelad(folder, "info run")

        predictions = read(folder / "run" / "predictions.csv")
        y, predicted = (np.array(predictions[name], dtype=int) for name in ("y", "predicted"))
        probability = np.array(predictions["probability"], dtype=float)
        print("\npatients.csv in, predictions.csv out: each comparison was predicted before it was learned")
        print(
            "(standard errors as if comparisons were independent, but those of one row have something in common)"
        )
        print(f"{'comparisons':>16}{'right':>8}{'± s.e.':>8}{'said, if similar':>18}{'if different':>14}")
        for part in np.array_split(np.arange(len(y)), 4):
            right, similar = y[part] == predicted[part], y[part] > 0
            error = right.std(ddof=1) / np.sqrt(len(part))
            said = probability[part][similar].mean(), probability[part][~similar].mean()
            span = f"{part[0] + 1} to {part[-1] + 1}"
            print(f"{span:>16}{right.mean():8.3f}{error:8.3f}{said[0]:18.2f}{said[1]:14.2f}")

        rows = read(folder / "map.csv")
        place = np.column_stack([rows["dim_1"], rows["dim_2"]]).astype(float)
        benign = np.array(rows["diagnosis"]) == "benign"
        gap = np.linalg.norm(place[benign].mean(axis=0) - place[~benign].mean(axis=0))
        spread = np.sqrt(np.mean([place[kind].var(axis=0).sum() for kind in (benign, ~benign)]))
        apart = f"{gap / spread:.1f} standard deviations apart"
        print(f"map.csv, of the patients it learned from: the diagnoses are {apart}")


if __name__ == "__main__":
    main()

"""How the measures of a study compare with scikit-learn's, in agreement and in time.

    python benchmarks/measures.py --trials 4 --first 200

takes them on all embeddings of so many trials, under the recommended and the paper's setting: about 20 s a trial.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from time import process_time

import numpy as np
from threadpoolctl import threadpool_limits

from ocelad.data import blocks
from ocelad.evaluate import cluster_nmi, knn_error
from ocelad.studies import Study
from ocelad.studies.methods import make

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
import scikit


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=4)
    parser.add_argument("--first", type=int, default=200, help="the number of starts was settled on trials 1 to 4")
    options = parser.parse_args()
    study, rows, seconds = Study(), [], np.zeros(4)
    for trial in range(options.first, options.first + options.trials):
        data, sample, rng = study.world(trial)
        trackers = [make(name) for name in ("ocelad", "paper's setting")]
        for block in blocks(data, rng, study.every, study.segments):
            labels = data.labels(block.clustering)
            for tracker in trackers:
                tracker.partial_fit(block.pairs, block.y)
                Z = tracker.transform(data.points @ block.rotation.T)[:, :3]
                row = []
                for k, measure in enumerate((knn_error, scikit.knn_error, cluster_nmi, scikit.cluster_nmi)):
                    start = process_time()
                    row.append(measure(Z[sample], labels[sample]) if k < 2 else measure(Z, labels))
                    seconds[k] += process_time() - start
                rows.append(row)
    error, theirs, nmi, slow = np.array(rows).T
    ms = 1e3 * seconds / len(rows)
    print(f"{len(rows)} embeddings")
    print(f"5-NN error: {(error != theirs).sum()} differ; {ms[0]:.2f} ms against {ms[1]:.2f}")
    print(
        f"NMI: {((nmi > 0.8) != (slow > 0.8)).sum()} on different sides of 0.8, means {nmi.mean():.4f} and "
        f"{slow.mean():.4f}, P(NMI > 0.8) {(nmi > 0.8).mean():.4f} and {(slow > 0.8).mean():.4f}; "
        f"{ms[2]:.2f} ms against {ms[3]:.2f}"
    )


if __name__ == "__main__":
    with threadpool_limits(1):
        main()

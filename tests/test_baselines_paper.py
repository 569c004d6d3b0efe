"""Small versions of what the paper claims of its baselines, on one trial of the synthetic experiment."""

import numpy as np
import pytest

from ocelad.baselines import Oracle, comid, dynamic_mirror_descent, online_itml, saol
from ocelad.data import SCENARIO
from ocelad.evaluate import knn_error
from ocelad.studies import Study


@pytest.fixture(scope="module", name="errors")
def fixture_errors():
    """Mean 5-NN error of each over the whole stream, seed 0."""
    trackers = {
        "SAOL": saol(step=8.0),
        "ITML": online_itml(rate=1.0),
        "ITML, low rate": online_itml(rate=0.03),
        "COMID": comid(step=1.0),
        "dynamic": dynamic_mirror_descent(step=1.0),
        "oracle": Oracle(),
    }
    study, errors = Study(), {name: [] for name in trackers}
    data, sample, rng = study.world(0)
    for step in data.stream(rng):
        trackers["oracle"].tell(step.rotation, SCENARIO[step.segment].clustering)
        for tracker in trackers.values():
            tracker.partial_fit(step.pair[None], [step.y])
        if step.t in study.times:
            points = data.points[sample] @ step.rotation.T
            for name, tracker in trackers.items():
                errors[name].append(knn_error(tracker.transform(points)[:, :3], step.labels[sample]))
    return {name: np.mean(values) for name, values in errors.items()}


def test_saol_fails(errors):
    assert errors["SAOL"] > 0.2


def test_online_itml_fails_at_a_bad_rate_only(errors):
    assert errors["ITML"] < 0.07
    assert errors["ITML, low rate"] > 0.09


def test_a_model_of_the_motion_helps(errors):
    assert errors["dynamic"] < errors["COMID"]


def test_knowing_the_truth(errors):
    assert errors["oracle"] < 0.01

"""Trackers for tests: RICE alone with any options, and the default beside it, a pool of experts."""

import pytest

from ocelad import MetricTracker


def rice(**options):
    """RICE alone, with other options."""
    return MetricTracker.rice().set_params(**options)


either = pytest.mark.parametrize("new", [MetricTracker, rice], ids=["pool", "rice"])
"""A test of what any tracker promises: ``new(**options)`` is one."""

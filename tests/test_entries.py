"""Kernels that are for kernels alone: without what Python needs for it, a call would end the process."""

import ast
import importlib
import inspect
import os
import pkgutil
import subprocess
import sys
import types
from importlib.util import find_spec

import numpy as np
import pytest

import ocelad
from ocelad import compiled
from ocelad.engine.kernels import factored, levels

KERNEL = type(compiled.entry(lambda: None))


def inner(thing):
    return isinstance(thing, KERNEL) and thing.targetoptions.get("no_cpython_wrapper", False)


def calls_of(module, tree):
    """What the functions and classes of a module call by name, without those of compiled functions."""
    for part in ast.iter_child_nodes(tree):
        if isinstance(part, ast.FunctionDef) and isinstance(getattr(module, part.name, None), KERNEL):
            continue
        for call in (node.func for node in ast.walk(part) if isinstance(node, ast.Call)):
            if isinstance(call, ast.Name):
                yield call.id, getattr(module, call.id, None)
            elif isinstance(call, ast.Attribute) and isinstance(call.value, ast.Name):
                owner = getattr(module, call.value.id, None)
                if isinstance(owner, types.ModuleType):
                    yield call.attr, getattr(owner, call.attr, None)


def wrong_calls(module, source):
    return [name for name, called in calls_of(module, ast.parse(source)) if inner(called)]


def test_python_calls_entries_only():
    names = [found.name for found in pkgutil.walk_packages(ocelad.__path__, "ocelad.")]
    if not find_spec("pyspark"):
        names = [name for name in names if not name.startswith("ocelad.spark.")]  # without a kernel, in any case
    modules = [importlib.import_module(name) for name in names if not name.endswith("__main__")]
    assert {m.__name__: wrong for m in modules if (wrong := wrong_calls(m, inspect.getsource(m)))} == {}
    entries = [
        thing for m in modules for thing in vars(m).values() if isinstance(thing, KERNEL) and not inner(thing)
    ]
    assert {"run", "turned", "clusters", "errors"} <= {entry.py_func.__name__ for entry in entries}
    assert wrong_calls(factored, "def wrong(s): return drop(s)") == ["drop"]  # it would have been found


@pytest.mark.parametrize("kernel", [factored.drop, factored.dot, factored.rank_one, levels.opening])
def test_a_call_from_python_is_refused(kernel):
    """Whatever it is given, and compiled already or not."""
    name = kernel.py_func.__name__
    for given in ((), (np.ones(3), np.ones(3), 3)):
        with pytest.raises(TypeError, match=f"{name} is a kernel for other kernels: Python cannot call it"):
            kernel(*given)


def test_without_a_compiler_it_is_said_what_is_wrong():
    code = "import numpy as np, ocelad; ocelad.MetricTracker().partial_fit(np.ones((1, 2, 2)), [1])"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True, text=True, check=False, env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
    )  # fmt: skip
    assert done.returncode == 1
    assert "ImportError: NUMBA_DISABLE_JIT is set" in done.stderr

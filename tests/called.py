"""Kernels that are for kernels alone, so that tests can call them."""

import numba


def called(kernel):
    return numba.jit(**{**kernel.targetoptions, "no_cpython_wrapper": False})(kernel.py_func)

"""Compiled kernels: plain functions on arrays, free of the interpreter lock. Only `engine` calls them."""

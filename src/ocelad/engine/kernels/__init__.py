"""Compiled kernels: plain functions on arrays, cached on disk, free of the interpreter lock.

They are imported, and compiled, only when a tracker first learns.
"""

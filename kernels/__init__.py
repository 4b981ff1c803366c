"""Compiled kernels: arrays in, arrays out; no dataframe, no option object.

Kernels import NumPy and Numba only. Modules are by theme.
"""

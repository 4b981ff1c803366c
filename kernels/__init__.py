"""Compiled kernels: arrays in, arrays out; no dataframe, no option object.

Kernels import NumPy and Numba alone. Each file holds one algorithm.
"""

"""Compiled kernels as files of our own, which a process runs without importing the compiler.

``entry`` and ``linking`` make such a file where Numba has just compiled or loaded a kernel;
``image`` is what the file holds; ``memory`` puts it where the processor can run it; ``calls``
chooses among a kernel's files by the types of the arguments; ``place`` says where the files are and
whether this process may use them. Whatever is not known for certain is left to Numba.
"""

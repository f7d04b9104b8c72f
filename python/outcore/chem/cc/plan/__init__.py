"""Sizes, arrays and statements of coupled cluster, and the place of each array.

sizes, layouts, assembly, describe: the calculation, without data.
work, ladder_kernels, triple_sizes, fitting: bytes, operations and work space of kernels and of integrals.
plan, places, room, buffers: the plan in a given memory, and the arrays that it places.
"""

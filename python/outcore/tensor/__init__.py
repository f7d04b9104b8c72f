"""Extended arrays: tensors of tiles that lie in memory or on disk, and computations with them.

layout: which tiles there are, their symmetry and shapes; expressions, without data.
arrays: the array, its back-ends and files.
plan: bounds, orders and schedules of products; statements.
run: the loop of a product.
program: recorded programs, their plan and run; einsum.
"""

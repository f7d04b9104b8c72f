"""Plans of products: bounds, order of letters, schedule, bytes and seconds.

bound: how little must move.
order, beside: which two arrays are multiplied first, and the memory beside panels.
choice, sizes, passes, estimates, schedule: panels of a product, from all there may be.
product_plan, shares, simulate, amounts: what a product moves and takes, and what processes have of it.
plan, text, statements: expressions of several products, and statements of programs.
rates, gemm, loop: the machine, and the native loop as Python calls it.
"""

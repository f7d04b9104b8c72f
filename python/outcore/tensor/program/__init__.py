"""Programs of statements: recording, fusion, places of arrays, run; einsum is a program of one statement."""

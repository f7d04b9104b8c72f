// What the shared library gives to its siblings, the Python module and the libraries for MPI, and to nobody
// else: they are built from the same sources, and are of no use with another build. Headers with such marks
// are not installed.
#pragma once

#define OUTCORE_SIBLING __attribute__((visibility("default")))

// Marks symbols that the shared library exports only to its siblings: the Python module and the libraries for
// MPI. They are built from the same sources, and do not work with another build. Headers with such marks are
// not installed.
#pragma once

#define OUTCORE_SIBLING __attribute__((visibility("default")))

/* Marks what the shared library exports: everything else in it is hidden. */
#ifndef OUTCORE_API_H
#define OUTCORE_API_H

#define OUTCORE_API __attribute__((visibility("default")))
/* Marks a part of an exported class that is not exported. */
#define OUTCORE_HIDDEN __attribute__((visibility("hidden")))

#endif

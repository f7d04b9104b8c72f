/* What the shared library gives to its users: everything else in it is hidden. */
#ifndef OUTCORE_API_H
#define OUTCORE_API_H

#define OUTCORE_API __attribute__((visibility("default")))
/* What stands in a class of the interface and is none of it. */
#define OUTCORE_HIDDEN __attribute__((visibility("hidden")))

#endif

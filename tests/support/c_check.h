/* Checks of the tests in C. */
#pragma once

#include <stdio.h>

static int failures = 0;

#define EXPECT(condition)                                          \
  do {                                                             \
    if (!(condition)) {                                            \
      printf("FAIL  %s:%d: %s\n", __FILE__, __LINE__, #condition); \
      ++failures;                                                  \
    }                                                              \
  } while (0)

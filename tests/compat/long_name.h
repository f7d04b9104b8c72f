/* Names as long as those that programs use in deep directories. */
#pragma once

#include <string.h>
#include <sys/stat.h>

#include "support/c_check.h"

enum { long_name_bytes = 2048, long_name_depth = 7 };

/* Makes nested directories with names of 200 letters in `directory`; `name` becomes the name of a file in the
 * innermost one. */
static void make_long_name(const char* directory, char name[long_name_bytes]) {
  char part[201];
  int depth;
  memset(part, 'd', 200);
  part[200] = 0;
  strcpy(name, directory);
  for (depth = 0; depth < long_name_depth; ++depth) {
    strcat(strcat(name, "/"), part);
    EXPECT(mkdir(name, 0700) == 0);
  }
  EXPECT(strlen(strcat(name, "/file")) > 1400);
}

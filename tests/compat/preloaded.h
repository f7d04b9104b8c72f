/* With -DPRELOADED: tells in which library a function is that the program calls. */
#pragma once
#ifdef PRELOADED
#include <dlfcn.h>
#include <string.h>

#include "classic_names.h"

static int is_ours(void* function) {
  Dl_info found;
  return dladdr(function, &found) && strstr(found.dli_fname, "liboutcore_pario") != NULL;
}
#endif

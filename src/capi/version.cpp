// The version of the library, as C programs see it.

#include "outcore/outcore.h"

#define OUTCORE_TEXT_OF(number) #number
#define OUTCORE_VERSION_TEXT(major, minor, patch) \
  OUTCORE_TEXT_OF(major) "." OUTCORE_TEXT_OF(minor) "." OUTCORE_TEXT_OF(patch)

int oc_version(const char** text) {
  if (text) *text = OUTCORE_VERSION_TEXT(OC_VERSION_MAJOR, OC_VERSION_MINOR, OC_VERSION_PATCH);
  return OC_VERSION;
}

/* Takes the place of a shared library of Global Arrays with its files and disk arrays: a program is linked to
 * it, and started with liboutcore_pario preloaded. None of these functions works. */
#include "classic_names.h"

#define NAME(name) \
  int name(void);  \
  int name(void) { \
    return 4711;   \
  }

DRA_NAMES(NAME)
DRA_FORTRAN_NAMES(NAME)
EAF_SF_NAMES(NAME)

const char* oc_pario_last_error(void);
const char* oc_pario_last_error(void) {
  return "";
}

/* A program with an MPI that Outcore does not know: shared files and disk arrays are refused with a code and
 * a text. */
#include <errno.h>
#include <string.h>

#include "outcore/compat/dra.h"
#include "outcore/compat/sf.h"
#include "support/c_check.h"

int MPI_Get_library_version(char* text, int* length);

int main(void) {
  char text[200], name[] = "/var/tmp/no_file";
  int length = 0, file = -1;
  EXPECT(MPI_Get_library_version(text, &length) == 0 && strcmp(text, "Some MPI 1.0") == 0);
  EXPECT(DRA_Init(4, 1e9, 1e9, 1e9) == ENOTSUP);
  EXPECT(strstr(oc_pario_last_error(), "Some MPI 1.0) speaks neither") != NULL);
  EXPECT(SF_Create(name, 1000, 1000, 100, &file) == ENOTSUP);
  SF_Errmsg(ENOTSUP, text);
  EXPECT(strlen(text) > 10 && strlen(text) < 80);
  printf("%d failed\n", failures);
  return failures != 0;
}

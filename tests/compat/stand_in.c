/* Stands for a shared library of Global Arrays, as far as its disk arrays are concerned: a program is linked
 * to it, and started with liboutcore_pario before it. Nothing here works. */
#define NAME(name) \
  int name(void);  \
  int name(void) { \
    return 4711;   \
  }

NAME(DRA_Init)
NAME(DRA_Terminate)
NAME(DRA_Open)
NAME(DRA_Close)
NAME(DRA_Delete)
NAME(DRA_Wait)
NAME(DRA_Probe)
NAME(DRA_Flick)
NAME(DRA_Print_internals)
NAME(NDRA_Create)
NAME(NDRA_Inquire)
NAME(NDRA_Write)
NAME(NDRA_Read)
NAME(NDRA_Write_section)
NAME(NDRA_Read_section)

const char* oc_pario_last_error(void);
const char* oc_pario_last_error(void) {
  return "";
}

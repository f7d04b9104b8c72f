/* The classic names of C and Fortran that the programs of these tests call. */
#pragma once

/* clang-format off */
#define DRA_NAMES(NAME) \
  NAME(DRA_Init) NAME(DRA_Terminate) NAME(DRA_Open) NAME(DRA_Close) NAME(DRA_Delete) NAME(DRA_Wait) \
  NAME(DRA_Probe) NAME(DRA_Flick) NAME(DRA_Print_internals) NAME(DRA_Set_default_config) \
  NAME(NDRA_Create) NAME(NDRA_Inquire) NAME(NDRA_Write) NAME(NDRA_Read) NAME(NDRA_Write_section) \
  NAME(NDRA_Read_section)

#define DRA_FORTRAN_NAMES(NAME) \
  NAME(dra_init_) NAME(dra_terminate_) NAME(dra_create_) NAME(dra_open_) NAME(dra_close_) \
  NAME(dra_delete_) NAME(dra_inquire_) NAME(dra_write_) NAME(dra_read_) NAME(dra_write_section_) \
  NAME(dra_read_section_) NAME(dra_wait_) NAME(dra_probe_) NAME(dra_flick_) NAME(dra_set_debug_) \
  NAME(dra_print_internals_) NAME(dra_set_default_config_) NAME(ndra_create_) \
  NAME(ndra_create_config_) NAME(ndra_inquire_) NAME(ndra_write_) NAME(ndra_read_) \
  NAME(ndra_write_section_) NAME(ndra_read_section_)

#define EAF_SF_NAMES(NAME) \
  NAME(EAF_Open) NAME(EAF_Close) NAME(EAF_Delete) NAME(EAF_Write) NAME(EAF_Read) NAME(EAF_Awrite) \
  NAME(EAF_Aread) NAME(EAF_Wait) NAME(EAF_Probe) NAME(EAF_Length) NAME(EAF_Truncate) NAME(EAF_Eof) \
  NAME(EAF_Errmsg) NAME(SF_Create) NAME(SF_Destroy) NAME(SF_Write) NAME(SF_Read) NAME(SF_Wait) \
  NAME(SF_Waitall) NAME(elio_open) NAME(elio_close) NAME(elio_delete) NAME(elio_read) NAME(elio_write) \
  NAME(elio_aread) NAME(elio_awrite) NAME(elio_wait) NAME(elio_probe) NAME(elio_length) \
  NAME(elio_truncate) NAME(elio_fsync) NAME(elio_dirname)
/* clang-format on */

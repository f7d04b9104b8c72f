/* Constants of the classic names, for C and Fortran. */
#ifndef CHEMIO_H
#define CHEMIO_H
#define ELIO_RW -1
#define ELIO_W -2
#define ELIO_R -3
#define ELIO_DONE -1
#define ELIO_PENDING 1
#define ELIO_OK 0
#define CHEMIO_RW ELIO_RW
#define CHEMIO_W ELIO_W
#define CHEMIO_R ELIO_R
#define CHEMIO_DONE ELIO_DONE
#define CHEMIO_PENDING ELIO_PENDING
#define CHEMIO_OK ELIO_OK
#endif

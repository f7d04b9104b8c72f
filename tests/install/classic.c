/* A program that uses classic names only. It ends with an error that it causes on purpose. */
#include <eaf.h>
#include <stdio.h>

int main(void) {
  char byte, message[80];
  int fd, code;
  if (EAF_Open("classic.file", EAF_RW, &fd)) return 1;
  code = EAF_Read(fd, 0, &byte, 1);
  if (EAF_Eof(code) != 0 || EAF_Close(fd) || EAF_Delete("classic.file")) return 2;
  EAF_Errmsg(code, message);
  puts(message);
  return 0;
}

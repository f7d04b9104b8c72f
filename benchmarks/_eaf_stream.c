/* Nonblocking requests of 1 MiB through the C interface, 8 under way, over and over a file, and prints the
 * bytes a second. Arguments: directory, read|write, size of the file in bytes, seconds.
 * The counterpart of fio with direct I/O: buffers in huge pages, each request at the next place. */
#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>

#include "_clock.h"
#include "_eaf_program.h"

enum { depth = 8, block = 1 << 20 };

int main(int count, char** arguments) {
  oc_eaf_options options = {.size = sizeof options};
  int64_t requests[depth], size, offset = 0, moved = 0, part = 0;
  int file = 0, lane, writing, under_way = 0;
  char* memory;
  double start, seconds;
  if (count != 5) return 2;
  options.scratch = arguments[1];
  options.keep = 1;
  options.page_cache = OC_PAGE_CACHE_DIRECT;
  writing = strcmp(arguments[2], "write") == 0;
  size = atoll(arguments[3]);
  seconds = atof(arguments[4]);
  memory = aligned_alloc(2 << 20, depth * block);
  madvise(memory, depth * block, MADV_HUGEPAGE);
  memset(memory, 1, depth * block);
  check(oc_eaf_open("raw", &options, &file));

  start = now();
  for (lane = 0; under_way == depth || now() - start < seconds; lane = (lane + 1) % depth) {
    if (under_way == depth) {
      check(oc_wait(requests[lane], &part));
      moved += part;
      --under_way;
      if (now() - start >= seconds) break;
    }
    check(writing ? oc_eaf_write_async(file, offset, memory + lane * block, block, &requests[lane])
                  : oc_eaf_read_async(file, offset, memory + lane * block, block, &requests[lane]));
    ++under_way;
    offset = (offset + block) % size;
  }
  while (under_way-- > 0) {
    lane = (lane + 1) % depth;
    check(oc_wait(requests[lane], &part));
    moved += part;
  }
  printf("%.0f\n", (double)moved / (now() - start));
  check(oc_eaf_close(file));
  return 0;
}

/* A disk that does not write before the test allows it: the call that begins a write returns earlier, and the
 * request is not complete. Linked with Global Arrays for the disk arrays; OUTCORE_ENGINE=threads, so that
 * writes are calls of the C library, which this program replaces. The argument is a directory. The alarm ends
 * a write that does not return. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "dra.h"
#include "eaf.h"
#include "ga_program.h"
#include "sf.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int held = 0, waiting = 0;

/* Holds writes to files; MPI uses pipes and sockets. */
static void pass(int file) {
  struct stat about;
  if (fstat(file, &about) != 0 || !S_ISREG(about.st_mode)) return;
  pthread_mutex_lock(&mutex);
  ++waiting;
  pthread_cond_broadcast(&changed);
  while (held) pthread_cond_wait(&changed, &mutex);
  --waiting;
  pthread_mutex_unlock(&mutex);
}

static void hold(int is) {
  pthread_mutex_lock(&mutex);
  held = is;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&mutex);
}

/* Waits until a write of this process is at the disk. */
static void await_write(void) {
  pthread_mutex_lock(&mutex);
  while (!waiting) pthread_cond_wait(&changed, &mutex);
  pthread_mutex_unlock(&mutex);
}

/* Waits for a write of any process: not every process writes for others. */
static void await_write_of_any(void) {
  int any = 0;
  while (!any) {
    pthread_mutex_lock(&mutex);
    any = waiting;
    pthread_mutex_unlock(&mutex);
    GA_Igop(&any, 1, (char*)"+");
  }
}

ssize_t pwrite(int file, const void* data, size_t bytes, off_t offset) {
  ssize_t (*real)(int, const void*, size_t, off_t) =
      (ssize_t (*)(int, const void*, size_t, off_t))dlsym(RTLD_NEXT, "pwrite");
  pass(file);
  return real(file, data, bytes, offset);
}

ssize_t pwritev(int file, const struct iovec* list, int count, off_t offset) {
  ssize_t (*real)(int, const struct iovec*, int, off_t) =
      (ssize_t (*)(int, const struct iovec*, int, off_t))dlsym(RTLD_NEXT, "pwritev");
  pass(file);
  return real(file, list, count, offset);
}

static char* path_of(const char* name) {
  static char path[1200];
  snprintf(path, sizeof path, "%s/%s", directory, name);
  return path;
}

enum { side = 1500, bytes = side * side * 8 };
static double out[side * side], in[side * side];

static void disk_array(void) {
  int dims[2] = {side, side}, lo[2] = {0, 0}, hi[2] = {side - 1, side - 1}, ld = side, d_a = 0, request = 0;
  int status = 7, g_a = NGA_Create(C_DBL, 2, dims, (char*)"a", NULL);
  dra_size_t its_dims[2] = {side, side}, unknown[2] = {-1, -1};
  if (me == 0) NGA_Put(g_a, lo, hi, out, &ld);
  GA_Sync();
  EXPECT(NDRA_Create(C_DBL, 2, its_dims, "held", path_of("held"), DRA_RW, unknown, &d_a) == 0);
  hold(1);
  EXPECT(NDRA_Write(g_a, d_a, &request) == 0);
  await_write_of_any();
  EXPECT(DRA_Probe(request, &status) == 0 && status == 1);
  GA_Sync(); /* of all processes */
  hold(0);
  EXPECT(DRA_Wait(request) == 0);
  EXPECT(DRA_Probe(request, &status) == 0 && status == 0);
  GA_Zero(g_a);
  EXPECT(NDRA_Read(g_a, d_a, &request) == 0 && DRA_Wait(request) == 0);
  NGA_Get(g_a, lo, hi, in, &ld);
  EXPECT(memcmp(in, out, bytes) == 0);
  GA_Sync();
  EXPECT(DRA_Delete(d_a) == 0);
  GA_Destroy(g_a);
}

static void exclusive_file(void) {
  int file = -1, request = 0, status = 7;
  char name[32];
  snprintf(name, sizeof name, "eaf%d", me);
  EXPECT(EAF_Open(path_of(name), EAF_RW, &file) == 0);
  hold(1);
  EXPECT(EAF_Awrite(file, 0, out, bytes, &request) == 0);
  await_write();
  EXPECT(EAF_Probe(request, &status) == 0 && status == 1);
  hold(0);
  EXPECT(EAF_Wait(file, request) == 0);
  memset(in, 0, bytes);
  EXPECT(EAF_Read(file, 0, in, bytes) == 0 && memcmp(in, out, bytes) == 0);
  EXPECT(EAF_Close(file) == 0 && EAF_Delete(path_of(name)) == 0);
}

/* It has no request to ask; the test only sees that it has returned. */
static void shared_file(void) {
  int file = -1, request = 0;
  EXPECT(SF_Create(path_of("sf"), 1e9, 1e9, bytes, &file) == 0);
  hold(1);
  EXPECT(SF_Write(file, (double)me * bytes, bytes, (char*)out, &request) == 0);
  await_write_of_any();
  GA_Sync();
  hold(0);
  EXPECT(SF_Wait(&request) == 0);
  memset(in, 0, bytes);
  EXPECT(SF_Read(file, (double)me * bytes, bytes, (char*)in, &request) == 0 && SF_Wait(&request) == 0);
  EXPECT(memcmp(in, out, bytes) == 0);
  EXPECT(SF_Destroy(file) == 0);
}

int main(int count, char** arguments) {
  int i;
  alarm(60);
  begin(count, arguments);
  for (i = 0; i < side * side; ++i) out[i] = 1.0 + i;
  EXPECT(DRA_Init(10, 1e9, 1e10, -1) == 0);
  exclusive_file();
  shared_file();
  disk_array();
  EXPECT(DRA_Terminate() == 0);
  return end();
}

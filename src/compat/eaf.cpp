// EAF: exclusive access files by their classic names, for C and Fortran.

#include "outcore/compat/eaf.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>

#include "compat/codes.hpp"
#include "compat/shared.hpp"
#include "outcore/compat/chemio.h"

namespace outcore::compat {
namespace {

using Clock = std::chrono::steady_clock;

using namespace eaf;  // its codes

/// A number that belongs to no request: there is nothing to wait for.
constexpr int done = CHEMIO_DONE;

struct Statistic {
  std::int64_t calls = 0, bytes = 0;
  double seconds = 0;
};

struct File {
  std::string path;
  int type = EAF_RW;
  std::mutex mutex;
  Statistic write, read, awrite, aread, wait;
};

struct Pending {
  int fd = 0;
  std::shared_ptr<File> file;  ///< may be closed meanwhile
  std::int64_t request = 0, bytes = 0;
  bool reads = false;
};

auto& files = *new Numbered<std::shared_ptr<File>>;
auto& requests = *new Numbered<Pending>;

/// Counts a call while it lives, and the bytes that it has moved.
class Counted {
 public:
  Counted(File& file, Statistic& statistic) : file_(file), statistic_(statistic), begin_(Clock::now()) {}
  ~Counted() {
    const std::lock_guard guard(file_.mutex);
    ++statistic_.calls;
    moved_in_->bytes += moved_;
    statistic_.seconds += std::chrono::duration<double>(Clock::now() - begin_).count();
  }
  /// Counts bytes that moved in this call, or in the call that began the request; `in` is its statistic.
  void moved(std::int64_t bytes) { moved_ = bytes; }
  void moved(std::int64_t bytes, Statistic& in) {
    moved_ = bytes;
    moved_in_ = &in;
  }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

 private:
  File& file_;
  Statistic& statistic_;
  Statistic* moved_in_ = &statistic_;
  std::int64_t moved_ = 0;
  Clock::time_point begin_;
};

/// Megabytes a second, over the time of the calls and the waits.
double rate(const Statistic& statistic, double waited_seconds) {
  const double seconds = statistic.seconds + waited_seconds;
  return statistic.bytes > 0 && seconds > 0 ? 1e-6 * static_cast<double>(statistic.bytes) / seconds : 0;
}

int not_open(int fd) {
  return failed(invalid_fd, "EAF: no file " + std::to_string(fd) + " is open");
}

/// Checks the arguments of a transfer. Returns a code.
int check(const std::shared_ptr<File>& file, int fd, double offset, int forbidden) {
  if (!file) return not_open(fd);
  if (!(std::floor(offset) == offset) || offset < 0 || offset > 9e15)
    return failed(fractional_offset, "EAF: offset " + std::to_string(offset) + " of " + file->path +
                                         " is no whole number from 0 on");
  if (file->type == forbidden)
    return failed(
        forbidden == EAF_R ? write_failed : read_failed,
        "EAF: " + file->path + " was opened " + (forbidden == EAF_R ? "to read" : "to write") + " only");
  return EAF_OK;
}

int ended(const File& file, std::int64_t moved, std::int64_t wanted) {
  return failed(eaf::end_of_file, "EAF: end of " + file.path + " after " + std::to_string(moved) + " of " +
                                      std::to_string(wanted) + " bytes");
}

int begin(int fd, double offset, void* buffer, std::size_t bytes, int* id, bool reads) {
  const auto file = files.get(fd).value_or(nullptr);
  if (const int code = check(file, fd, offset, reads ? EAF_W : EAF_R)) return code;
  const Counted counted(*file, reads ? file->aread : file->awrite);  // counts its bytes when it is waited for
  const auto at = static_cast<std::int64_t>(offset), size = static_cast<std::int64_t>(bytes);
  Pending pending{fd, file, 0, size, reads};
  const int number = requests.add(pending);  // before it begins, so that it can be waited for
  const int code = reads ? oc_eaf_read_async(fd, at, buffer, size, &pending.request)
                         : oc_eaf_write_async(fd, at, buffer, size, &pending.request);
  if (code) {
    requests.take(number);
    return failed(reads ? aread_failed : awrite_failed);
  }
  requests.put(*id = number, std::move(pending));
  return EAF_OK;
}

/// The directory whose file system is meant: the path if it is a directory, else its parent.
std::string directory_of(const std::string& path) {
  struct stat found{};
  if (!path.empty() && stat(path.c_str(), &found) == 0 && S_ISDIR(found.st_mode)) return path;
  return split_path(path).directory;
}

}  // namespace
}  // namespace outcore::compat

using namespace outcore::compat;

OUTCORE_CLASSIC int EAF_Open(const char* fname, int type, int* fd) {
  return guarded(open_failed, [&]() -> int {
    const std::string path = text_of(fname);
    const auto [directory, name] = split_path(path);
    if (type > 0) type = EAF_RW;  // a file in memory of so many megabytes, in the original
    if (type != EAF_RW && type != EAF_R && type != EAF_W)
      return failed(open_failed, "EAF: open " + path + ": the type is none of EAF_RW, EAF_R, EAF_W");
    oc_eaf_options options{};
    options.size = sizeof options;
    options.scratch = directory.c_str();
    options.keep = 1;
    options.read_only = type == EAF_R;
    int opened = 0;
    if (oc_eaf_open(name.c_str(), &options, &opened)) return failed(open_failed);
    if (type == EAF_W && oc_eaf_truncate(opened, 0)) {
      failed(open_failed);
      oc_eaf_close(opened);
      return open_failed;
    }
    auto file = std::make_shared<File>();
    file->path = path;
    file->type = type;
    files.put(opened, std::move(file));
    *fd = opened;
    return EAF_OK;
  });
}

OUTCORE_CLASSIC int EAF_Close(int fd) {
  return guarded(close_failed, [&]() -> int {
    if (!files.take(fd)) return not_open(fd);
    return oc_eaf_close(fd) ? failed(close_failed) : EAF_OK;
  });
}

OUTCORE_CLASSIC int EAF_Delete(const char* fname) {
  return guarded(unlink_failed, [&]() -> int {
    const std::string path = text_of(fname);
    if (unlink(path.c_str()) == 0 || errno == ENOENT || errno == ENOTDIR) return EAF_OK;
    return failed(unlink_failed, "EAF: delete " + path + ": " + std::strerror(errno));
  });
}

OUTCORE_CLASSIC int EAF_Write(int fd, eaf_off_t offset, const void* buf, size_t bytes) {
  return guarded(write_failed, [&]() -> int {
    const auto file = files.get(fd).value_or(nullptr);
    if (const int code = check(file, fd, offset, EAF_R)) return code;
    Counted counted(*file, file->write);
    const auto size = static_cast<std::int64_t>(bytes);
    if (oc_eaf_write(fd, static_cast<std::int64_t>(offset), buf, size)) return failed(write_failed);
    counted.moved(size);
    return EAF_OK;
  });
}

OUTCORE_CLASSIC int EAF_Read(int fd, eaf_off_t offset, void* buf, size_t bytes) {
  return guarded(read_failed, [&]() -> int {
    const auto file = files.get(fd).value_or(nullptr);
    if (const int code = check(file, fd, offset, EAF_W)) return code;
    Counted counted(*file, file->read);
    const auto wanted = static_cast<std::int64_t>(bytes);
    std::int64_t moved = 0;
    if (oc_eaf_read(fd, static_cast<std::int64_t>(offset), buf, wanted, &moved)) return failed(read_failed);
    counted.moved(moved);
    return moved < wanted ? ended(*file, moved, wanted) : EAF_OK;
  });
}

OUTCORE_CLASSIC int EAF_Awrite(int fd, eaf_off_t offset, const void* buf, size_t bytes, int* req_id) {
  return guarded(awrite_failed,
                 [&] { return begin(fd, offset, const_cast<void*>(buf), bytes, req_id, false); });
}

OUTCORE_CLASSIC int EAF_Aread(int fd, eaf_off_t offset, void* buf, size_t bytes, int* req_id) {
  return guarded(aread_failed, [&] { return begin(fd, offset, buf, bytes, req_id, true); });
}

OUTCORE_CLASSIC int EAF_Wait(int fd, int id) {
  return guarded(wait_failed, [&]() -> int {
    if (id == done) return EAF_OK;
    const auto asked = requests.get(id);
    if (asked && asked->fd != fd)
      return failed(wait_failed, "EAF: request " + std::to_string(id) + " is of file " +
                                     std::to_string(asked->fd) + " (" + asked->file->path + "), not of " +
                                     std::to_string(fd));
    const auto found = requests.take(id);
    if (!found) return failed(wait_failed, "EAF: there is no request " + std::to_string(id));
    File& file = *found->file;
    Counted counted(file, file.wait);
    std::int64_t moved = 0;
    if (oc_wait(found->request, &moved)) return failed(found->reads ? aread_failed : awrite_failed);
    counted.moved(moved, found->reads ? file.aread : file.awrite);
    return found->reads && moved < found->bytes ? ended(file, moved, found->bytes) : EAF_OK;
  });
}

OUTCORE_CLASSIC int EAF_Probe(int id, int* status) {
  return guarded(probe_failed, [&]() -> int {
    const auto found = requests.get(id);
    int is_done = 1;
    if (!found && id != done) return failed(probe_failed, "EAF: there is no request " + std::to_string(id));
    if (found && oc_test(found->request, &is_done)) return failed(probe_failed);
    *status = !is_done;
    return EAF_OK;
  });
}

OUTCORE_CLASSIC int EAF_Length(int fd, eaf_off_t* length) {
  return guarded(length_failed, [&]() -> int {
    std::int64_t bytes = 0;
    if (!files.get(fd)) return not_open(fd);
    if (oc_eaf_length(fd, &bytes)) return failed(length_failed);
    *length = static_cast<double>(bytes);
    return EAF_OK;
  });
}

OUTCORE_CLASSIC int EAF_Truncate(int fd, eaf_off_t length) {
  return guarded(truncate_failed, [&]() -> int {
    const auto file = files.get(fd).value_or(nullptr);
    if (const int code = check(file, fd, length, EAF_R)) return code;
    return oc_eaf_truncate(fd, static_cast<std::int64_t>(length)) ? failed(truncate_failed) : EAF_OK;
  });
}

/// In MiB, as the original returns it and programs expect it; its documentation says kilobytes. It calls a
/// file system UFS, PFS or PIOFS; machines with the latter two are gone.
OUTCORE_CLASSIC int EAF_Stat(const char* path, long* avail_mb, char* fstype, int fslen) {
  return guarded(stat_failed, [&]() -> int {
    std::int64_t bytes = 0;
    if (oc_eaf_stat(directory_of(text_of(path)).c_str(), &bytes, nullptr, 0)) return failed(stat_failed);
    *avail_mb = static_cast<long>(bytes >> 20);
    hand_out_c("UFS", fstype, static_cast<std::size_t>(std::max(fslen, 0)));
    return EAF_OK;
  });
}

OUTCORE_CLASSIC int EAF_Eof(int code) {
  return code != eaf::end_of_file;
}

OUTCORE_CLASSIC void EAF_Errmsg(int code, char* msg) {
  guarded([&] {
    hand_out_c(error_text(code), msg, 80);
    return OC_OK;
  });
}

OUTCORE_CLASSIC void EAF_Print_stats(int fd) {
  guarded([&] {
    const auto file = files.get(fd).value_or(nullptr);
    std::int64_t length = 0;
    if (!file || oc_eaf_length(fd, &length)) return OC_OK;
    const std::lock_guard guard(file->mutex);
    const Statistic* const all[] = {&file->write, &file->read, &file->awrite, &file->aread, &file->wait};
    constexpr const char* rule = "------------------------------------------------------------\n";
    std::printf("\n%sEAF file %d: \"%s\" size=%lld bytes\n%s", rule, fd, file->path.c_str(),
                static_cast<long long>(length), rule);
    std::printf("               write      read    awrite     aread      wait\n");
    std::printf("               -----      ----    ------     -----      ----\n     calls:");
    for (const Statistic* each : all) std::printf(" %8lld ", static_cast<long long>(each->calls));
    std::printf("\n   data(b):");
    for (const Statistic* each : all)
      if (each != &file->wait) std::printf(" %8.2e ", static_cast<double>(each->bytes));
    std::printf("\n   time(s):");
    for (const Statistic* each : all) std::printf(" %8.2e ", each->seconds);
    std::printf("\nrate(mb/s):");
    for (const Statistic* each : {&file->write, &file->read}) std::printf(" %8.2e ", rate(*each, 0));
    if (file->wait.calls > 0) {  // the time of waiting is not known separately for reads and writes
      for (const Statistic* each : {&file->awrite, &file->aread})
        std::printf(" %8.2e*", rate(*each, file->wait.seconds));
      std::printf("\n%s* = Effective rate.  Full wait time used for read and write.\n\n", rule);
    } else {
      std::printf("\n%s\n", rule);
    }
    std::fflush(stdout);
    return OC_OK;
  });
}

// ---- Fortran ----

OUTCORE_CLASSIC Integer eaf_open_(const char* fname, const Integer* type, Integer* fd, std::size_t length) {
  return guarded(open_failed, [&]() -> Integer {
    int opened = -1;
    const int code = EAF_Open(text_of(fname, length).c_str(), static_cast<int>(*type), &opened);
    *fd = opened;
    return code;
  });
}

OUTCORE_CLASSIC Integer eaf_close_(const Integer* fd) {
  return EAF_Close(static_cast<int>(*fd));
}

OUTCORE_CLASSIC Integer eaf_delete_(const char* fname, std::size_t length) {
  return guarded(unlink_failed, [&] { return EAF_Delete(text_of(fname, length).c_str()); });
}

OUTCORE_CLASSIC Integer eaf_write_(const Integer* fd, const double* offset, const void* buf,
                                   const Integer* bytes) {
  return EAF_Write(static_cast<int>(*fd), *offset, buf, static_cast<std::size_t>(*bytes));
}

OUTCORE_CLASSIC Integer eaf_read_(const Integer* fd, const double* offset, void* buf, const Integer* bytes) {
  return EAF_Read(static_cast<int>(*fd), *offset, buf, static_cast<std::size_t>(*bytes));
}

OUTCORE_CLASSIC Integer eaf_awrite_(const Integer* fd, const double* offset, const void* buf,
                                    const Integer* bytes, Integer* req_id) {
  int id = -1;
  const int code = EAF_Awrite(static_cast<int>(*fd), *offset, buf, static_cast<std::size_t>(*bytes), &id);
  *req_id = id;
  return code;
}

OUTCORE_CLASSIC Integer eaf_aread_(const Integer* fd, const double* offset, void* buf, const Integer* bytes,
                                   Integer* req_id) {
  int id = -1;
  const int code = EAF_Aread(static_cast<int>(*fd), *offset, buf, static_cast<std::size_t>(*bytes), &id);
  *req_id = id;
  return code;
}

OUTCORE_CLASSIC Integer eaf_wait_(const Integer* fd, const Integer* id) {
  return EAF_Wait(static_cast<int>(*fd), static_cast<int>(*id));
}

OUTCORE_CLASSIC Integer eaf_probe_(const Integer* id, Integer* status) {
  int pending = 0;
  const int code = EAF_Probe(static_cast<int>(*id), &pending);
  *status = pending;
  return code;
}

OUTCORE_CLASSIC Integer eaf_length_(const Integer* fd, double* length) {
  return EAF_Length(static_cast<int>(*fd), length);
}

OUTCORE_CLASSIC Integer eaf_truncate_(const Integer* fd, const double* length) {
  return EAF_Truncate(static_cast<int>(*fd), *length);
}

OUTCORE_CLASSIC Integer eaf_stat_(const char* path, Integer* avail_mb, char* fstype, std::size_t path_length,
                                  std::size_t type_length) {
  return guarded(stat_failed, [&]() -> Integer {
    long megabytes = 0;
    char type[64] = "";
    const int code = EAF_Stat(text_of(path, path_length).c_str(), &megabytes, type, sizeof type);
    if (code) return code;
    hand_out(type, fstype, type_length);
    *avail_mb = static_cast<Integer>(megabytes);
    return EAF_OK;
  });
}

/// True at the end of the file, as documented for Fortran.
OUTCORE_CLASSIC Integer eaf_eof_(const Integer* code) {
  return *code == eaf::end_of_file;
}

OUTCORE_CLASSIC void eaf_errmsg_(const Integer* code, char* msg, std::size_t length) {
  guarded([&] {
    hand_out(error_text(static_cast<int>(*code)), msg, length);
    return OC_OK;
  });
}

OUTCORE_CLASSIC void eaf_print_stats_(const Integer* fd) {
  EAF_Print_stats(static_cast<int>(*fd));
}

/// Used by test programs: a random number, with a seed unless it is 0; bytes of an INTEGER.
OUTCORE_CLASSIC double eaf_util_random_(const Integer* seed) {
  if (*seed) srandom(static_cast<unsigned>(*seed));
  return static_cast<double>(random()) / 2147483648.0;
}

OUTCORE_CLASSIC Integer eaf_util_szint_() {
  return sizeof(Integer);
}

// The workers of bench sf: shared files of Outcore, MPI-IO, and plain calls of the first process alone.
//
// Argument: a directory. The commands (see _workers.py) name the side, the bytes of a request and of the
// whole file: `write SIDE REQUEST TOTAL` makes a file and writes it round-robin, request k by process k % n;
// `read SIDE REQUEST TOTAL` reads what the neighbour wrote; `end SIDE` removes the file. Times are from the
// moment when the first process begins until the last is done.
#include <fcntl.h>
#include <mpi.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <sstream>
#include <string>

#include "outcore/shared_file.hpp"
#include "outcore/world.hpp"

namespace {

using outcore::file::SharedFile;
using Bytes = std::span<std::byte>;

constexpr std::size_t max_request_bytes = 1 << 20;

double now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

void check(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "%s: %s\n", what, std::strerror(errno));
  MPI_Abort(MPI_COMM_WORLD, 1);
}

struct Side {
  virtual ~Side() = default;
  virtual void create(std::int64_t request, std::int64_t total) = 0;
  virtual void write(Bytes buffer, std::int64_t offset) = 0;
  virtual void read(Bytes buffer, std::int64_t offset) = 0;
  virtual void written() {}  ///< others will read it
  virtual void remove() = 0;
};

class Ours final : public Side {
 public:
  explicit Ours(outcore::World& world) : world_(world) {}
  void create(std::int64_t request, std::int64_t total) override {
    file_.emplace(world_, "bench",
                  outcore::file::SharedFileOptions{.hard_limit_bytes = total,
                                                   .soft_limit_bytes = total,
                                                   .reserve = true,
                                                   .typical_request_bytes = request});
  }
  void write(Bytes buffer, std::int64_t offset) override { file_->write(buffer, offset); }
  void read(Bytes buffer, std::int64_t offset) override { file_->read(buffer, offset); }
  void written() override { file_->sync(); }
  void remove() override {
    file_->close();
    file_.reset();
  }

 private:
  outcore::World& world_;
  std::optional<SharedFile> file_;
};

/// Independent access; explicit offsets.
class MpiIo final : public Side {
 public:
  explicit MpiIo(const std::string& directory) : path_(directory + "/mpi") {}
  void create(std::int64_t, std::int64_t) override {
    check(MPI_File_open(MPI_COMM_WORLD, path_.c_str(), MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL,
                        &file_) == MPI_SUCCESS,
          "MPI_File_open");
  }
  void write(Bytes buffer, std::int64_t offset) override {
    check(MPI_File_write_at(file_, offset, buffer.data(), static_cast<int>(buffer.size()), MPI_BYTE,
                            MPI_STATUS_IGNORE) == MPI_SUCCESS,
          "MPI_File_write_at");
  }
  void read(Bytes buffer, std::int64_t offset) override {
    check(MPI_File_read_at(file_, offset, buffer.data(), static_cast<int>(buffer.size()), MPI_BYTE,
                           MPI_STATUS_IGNORE) == MPI_SUCCESS,
          "MPI_File_read_at");
  }
  void remove() override {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    check(MPI_File_close(&file_) == MPI_SUCCESS, "MPI_File_close");
    if (rank == 0) check(unlink(path_.c_str()) == 0, "unlink");
  }

 private:
  std::string path_;
  MPI_File file_ = MPI_FILE_NULL;
};

/// pread and pwrite of one file by one process.
class Plain final : public Side {
 public:
  explicit Plain(const std::string& directory) : path_(directory + "/plain") {}
  void create(std::int64_t, std::int64_t) override {
    fd_ = open(path_.c_str(), O_CREAT | O_RDWR | O_TRUNC, 0600);
    check(fd_ >= 0, "open");
  }
  void write(Bytes buffer, std::int64_t offset) override {
    check(pwrite(fd_, buffer.data(), buffer.size(), offset) == std::ssize(buffer), "pwrite");
  }
  void read(Bytes buffer, std::int64_t offset) override {
    check(pread(fd_, buffer.data(), buffer.size(), offset) == std::ssize(buffer), "pread");
  }
  void remove() override {
    close(fd_);
    check(unlink(path_.c_str()) == 0, "unlink");
  }

 private:
  std::string path_;
  int fd_ = -1;
};

/// Moves requests first, first + step, ...; whether those that were read are what was written.
bool move(Side& side, bool writes, Bytes buffer, std::int64_t first, std::int64_t step, std::int64_t count) {
  const auto size = std::ssize(buffer);
  std::byte* const last = buffer.data() + size - sizeof(std::int64_t);
  bool good = true;
  for (std::int64_t k = first; k < count; k += step) {
    if (writes) {
      std::memcpy(buffer.data(), &k, sizeof k);
      std::memcpy(last, &k, sizeof k);
      side.write(buffer, k * size);
    } else {
      side.read(buffer, k * size);
      good = good && std::memcmp(buffer.data(), &k, sizeof k) == 0 && std::memcmp(last, &k, sizeof k) == 0;
    }
  }
  if (writes) side.written();
  return good;
}

class Worker {
 public:
  Worker(outcore::World& world, const std::string& directory) : world_(world) {
    sides_["ours"] = std::make_unique<Ours>(world);
    sides_["mpi"] = std::make_unique<MpiIo>(directory);
    sides_["plain"] = std::make_unique<Plain>(directory);
  }

  void obey(const std::string& line) {
    std::string command, name;
    std::int64_t request = 0, total = 0;
    std::istringstream(line) >> command >> name >> request >> total;
    Side& side = *sides_.at(name);
    const bool alone = name == "plain", idle = alone && world_.rank() > 0;
    if (command == "end") {
      if (!idle) side.remove();
      return answer(0, 0, true);
    }
    const bool writes = command == "write";
    const int count = alone ? 1 : world_.size();
    if (writes && !idle) side.create(request, total);
    const Bytes buffer(memory_.get(), static_cast<std::size_t>(request));
    std::memset(buffer.data(), 0, buffer.size());
    world_.barrier();
    const double begin = now();
    bool good = true;
    if (!idle)
      good = move(side, writes, buffer, (world_.rank() + (writes ? 0 : 1)) % count, count, total / request);
    answer(begin, idle ? begin : now(), good);
  }

  /// The earliest begin and the latest end, by the first process.
  void answer(double begin, double end, bool good) const {
    double ends[2] = {-begin, end};
    int all_good = good ? 1 : 0;
    MPI_Allreduce(MPI_IN_PLACE, ends, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &all_good, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (world_.rank() != 0) return;
    std::printf("%.9f %.9f %d\n", -ends[0], ends[1], all_good);
    std::fflush(stdout);
  }

  /// The next command of the first process, to all; those that wait sleep.
  [[nodiscard]] std::string next() const {
    char line[256] = "";
    if (world_.rank() == 0 && !std::fgets(line, sizeof line, stdin)) std::strcpy(line, "quit");
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ibcast(line, sizeof line, MPI_CHAR, 0, MPI_COMM_WORLD, &request);
    for (int done = 0;;) {
      MPI_Test(&request, &done, MPI_STATUS_IGNORE);
      if (done) return line;
      usleep(2000);
    }
  }

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  outcore::World& world_;
  std::map<std::string, std::unique_ptr<Side>> sides_;
  std::unique_ptr<std::byte, Free> memory_{
      static_cast<std::byte*>(std::aligned_alloc(4096, max_request_bytes))};
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  int level = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  {
    auto world =
        outcore::World::mpi(MPI_Comm_c2f(MPI_COMM_WORLD), {.memory_bytes = 500'000'000, .scratch = argv[1]});
    Worker worker(world, argv[1]);
    worker.answer(0, 0, true);
    for (std::string line = worker.next(); !line.starts_with("quit"); line = worker.next()) worker.obey(line);
  }
  MPI_Finalize();
  return 0;
}

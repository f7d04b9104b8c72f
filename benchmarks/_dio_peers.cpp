// Peers of `bench dio`, of its shape: `_dio_peers RESULT DIRECTORY ROUNDS`. Process 1 serves a file to
// process 0, 16 requests outstanding: by MPI messages around pread and pwrite, and over TCP sockets around
// sendfile (pread past the page cache), with one connection or four, each with a thread of its own at both
// ends. Lines of RESULT:
//
//   peer cache operation size seconds share_of_asking share_of_serving
//
// with the processor time of each process over the wall time.
#include <arpa/inet.h>
#include <fcntl.h>
#include <mpi.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr std::int64_t sizes[] = {4 << 10, 16 << 10, 32 << 10, 64 << 10, 256 << 10, 1 << 20};
constexpr std::int64_t smallest = 32 << 10;  // as _dio_worker.py
constexpr int outstanding = 16, max_connections = 4;

int rank = 0;

void must(bool good, const char* what) {
  if (good) return;
  std::perror(what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double processor_seconds() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) { return double(time.tv_sec) + 1e-6 * double(time.tv_usec); };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

struct Header {
  std::int64_t offset, size;
};

/// Requests of one kind: the file, and memory for as many as are outstanding.
struct Kind {
  int file;
  bool direct, writes;
  std::int64_t size, count;
  char* memory;

  [[nodiscard]] char* buffer(std::int64_t k) const { return memory + k % outstanding * size; }
  /// Of request k.
  void from_disk(std::int64_t k) const {
    must(pread(file, buffer(k), std::size_t(size), k * size) == size, "pread");
  }
  void to_disk(std::int64_t k) const {
    must(pwrite(file, buffer(k), std::size_t(size), k * size) == size, "pwrite");
  }
};

// ---- MPI ----

void by_messages(const Kind& kind) {
  const int size = int(kind.size);
  MPI_Request moving[outstanding], answered[outstanding];
  std::fill_n(moving, outstanding, MPI_REQUEST_NULL);
  std::fill_n(answered, outstanding, MPI_REQUEST_NULL);
  std::int64_t said[outstanding] = {};
  const bool asks = rank == 0;
  for (std::int64_t k = 0; k < kind.count + outstanding; ++k) {
    const int slot = int(k % outstanding);
    if (k >= outstanding) {
      MPI_Wait(&moving[slot], MPI_STATUS_IGNORE);
      if (kind.writes && !asks) {
        kind.to_disk(k - outstanding);
        said[slot] = k;
        MPI_Isend(&said[slot], 1, MPI_INT64_T, 0, 3, MPI_COMM_WORLD, &answered[slot]);
      }
      if (kind.writes) MPI_Wait(&answered[slot], MPI_STATUS_IGNORE);
    }
    if (k >= kind.count) continue;
    if (asks && kind.writes) {
      MPI_Irecv(&said[slot], 1, MPI_INT64_T, 1, 3, MPI_COMM_WORLD, &answered[slot]);
      MPI_Isend(kind.buffer(k), size, MPI_BYTE, 1, 2, MPI_COMM_WORLD, &moving[slot]);
    } else if (asks) {
      const Header header{k * kind.size, kind.size};
      MPI_Irecv(kind.buffer(k), size, MPI_BYTE, 1, 2, MPI_COMM_WORLD, &moving[slot]);
      MPI_Send(&header, sizeof header, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
    } else if (kind.writes) {
      MPI_Irecv(kind.buffer(k), size, MPI_BYTE, 0, 2, MPI_COMM_WORLD, &moving[slot]);
    } else {
      Header header{};
      MPI_Recv(&header, sizeof header, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      kind.from_disk(k);
      MPI_Isend(kind.buffer(k), size, MPI_BYTE, 0, 2, MPI_COMM_WORLD, &moving[slot]);
    }
  }
}

// ---- sockets ----

void receive(int socket, void* data, std::int64_t size) {
  must(recv(socket, data, std::size_t(size), MSG_WAITALL) == size, "recv");
}

void send_all(int socket, const char* data, std::int64_t size) {
  while (size > 0) {
    const ssize_t sent = send(socket, data, std::size_t(size), 0);
    must(sent > 0, "send");
    data += sent;
    size -= sent;
  }
}

/// Requests first, first + step, ..
void serve(int socket, const Kind& kind, std::int64_t first, std::int64_t step) {
  for (std::int64_t k = first; k < kind.count; k += step) {
    Header header{};
    receive(socket, &header, sizeof header);
    if (kind.writes) {
      receive(socket, kind.buffer(k), kind.size);
      kind.to_disk(k);
      send_all(socket, reinterpret_cast<const char*>(&header.offset), sizeof header.offset);
    } else if (kind.direct) {
      kind.from_disk(k);
      send_all(socket, kind.buffer(k), kind.size);
    } else {
      off_t offset = k * kind.size;
      for (std::int64_t left = kind.size; left > 0;) {
        const ssize_t sent = sendfile(socket, kind.file, &offset, std::size_t(left));
        must(sent > 0, "sendfile");
        left -= sent;
      }
    }
  }
}

void ask(int socket, const Kind& kind, std::int64_t first, std::int64_t step) {
  const std::int64_t ahead = outstanding / step * step;
  for (std::int64_t k = first; k < kind.count + ahead; k += step) {
    if (k >= ahead) {
      std::int64_t answer = 0;
      if (kind.writes)
        receive(socket, &answer, sizeof answer);
      else
        receive(socket, kind.buffer(k - ahead), kind.size);
    }
    if (k >= kind.count) continue;
    Header header{k * kind.size, kind.size};
    iovec parts[] = {{&header, sizeof header}, {kind.buffer(k), std::size_t(kind.size)}};
    if (kind.writes) {
      const ssize_t sent = writev(socket, parts, 2);
      must(sent >= ssize_t(sizeof header), "writev");
      const std::int64_t of_data = sent - std::int64_t(sizeof header);
      send_all(socket, kind.buffer(k) + of_data, kind.size - of_data);
    } else {
      send_all(socket, reinterpret_cast<const char*>(&header), sizeof header);
    }
  }
}

void by_sockets(const Kind& kind, const std::vector<int>& sockets, int connections) {
  std::vector<std::thread> threads;
  for (int i = 0; i < connections; ++i)
    threads.emplace_back([&, i] {
      if (rank == 0)
        ask(sockets[std::size_t(i)], kind, i, connections);
      else
        serve(sockets[std::size_t(i)], kind, i, connections);
    });
  for (std::thread& each : threads) each.join();
}

std::vector<int> connected() {
  std::vector<int> found;
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof place;
  const int door = socket(AF_INET, SOCK_STREAM, 0);
  if (rank == 1) {
    must(bind(door, reinterpret_cast<sockaddr*>(&place), length) == 0, "bind");
    must(listen(door, max_connections) == 0, "listen");
    must(getsockname(door, reinterpret_cast<sockaddr*>(&place), &length) == 0, "getsockname");
  }
  MPI_Bcast(&place.sin_port, sizeof place.sin_port, MPI_BYTE, 1, MPI_COMM_WORLD);
  for (int i = 0; i < max_connections; ++i) {
    const int one = 1;
    int made = 0;
    if (rank == 1) {
      made = accept(door, nullptr, nullptr);
    } else {
      made = socket(AF_INET, SOCK_STREAM, 0);
      must(connect(made, reinterpret_cast<sockaddr*>(&place), length) == 0, "connect");
    }
    must(made >= 0, "accept");
    setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    found.push_back(made);
  }
  close(door);
  return found;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const std::string path = std::string(argv[2]) + "/served";
  const int rounds = std::atoi(argv[3]);
  const std::int64_t moved_bytes = std::atoll(argv[4]);
  void* raw = nullptr;
  must(posix_memalign(&raw, 4096, outstanding << 20) == 0, "posix_memalign");
  std::fill_n(static_cast<char*>(raw), outstanding << 20, char(1));
  int files[2] = {-1, -1};
  if (rank == 1) {
    files[0] = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
    files[1] = open(path.c_str(), O_RDWR | O_DIRECT);
    must(files[0] >= 0 && files[1] >= 0, path.c_str());
    unlink(path.c_str());
  }
  const std::vector<int> sockets = connected();
  std::ofstream result;
  if (rank == 0) result.open(argv[1]);
  for (int round = -1; round < rounds; ++round)
    for (const bool direct : {false, true})
      for (const std::int64_t size : sizes)
        for (const bool writes : {true, false})
          for (const int way : {0, 1, max_connections}) {
            const Kind kind{
                files[direct],          direct, writes, size, moved_bytes / std::max(size, smallest),
                static_cast<char*>(raw)};
            MPI_Barrier(MPI_COMM_WORLD);
            const double begun = now(), used = processor_seconds();
            way == 0 ? by_messages(kind) : by_sockets(kind, sockets, way);
            double took = now() - begun, share[2] = {0, (processor_seconds() - used) / took};
            MPI_Gather(&share[1], 1, MPI_DOUBLE, share, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
            if (rank != 0 || round < 0) continue;
            const char* peer = way == 0 ? "MPI" : way == 1 ? "socket" : "sockets";
            result << peer << ' ' << (direct ? "direct" : "buffered") << ' ' << (writes ? "write" : "read")
                   << ' ' << size << ' ' << took << ' ' << share[0] << ' ' << share[1] << '\n';
          }
  result.close();
  MPI_Finalize();
}

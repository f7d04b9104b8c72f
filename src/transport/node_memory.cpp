#include "transport/node_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "base/file_size_limit.hpp"
#include "base/uninterrupted.hpp"
#include "outcore/error.hpp"
#include "transport/agree.hpp"
#include "transport/memory_segment.hpp"

namespace outcore::transport {
namespace {

/// The place of the memory at the first process of the node, by which others find it.
struct Address {
  std::int64_t process = 0, descriptor = -1, device = 0, inode = 0;
};

class Descriptor {
 public:
  Descriptor() = default;
  ~Descriptor() {
    if (number >= 0) ::close(number);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number = -1;
};

[[noreturn]] void fail(const char* attempted, std::size_t size_bytes, std::string detail) {
  throw Error(errno, {.attempted = attempted,
                      .size_bytes = static_cast<std::int64_t>(size_bytes),
                      .detail = std::move(detail)});
}

Address make(Descriptor& descriptor, std::size_t file_bytes) {
  outlive_file_size_limit();
  descriptor.number = memfd_create("outcore", MFD_CLOEXEC);
  struct stat status{};
  if (descriptor.number < 0 ||
      uninterrupted([&] { return ftruncate(descriptor.number, static_cast<off_t>(file_bytes)); }) != 0 ||
      fstat(descriptor.number, &status) != 0)
    fail("make shared memory", file_bytes, file_size_limit(errno));
  return {getpid(), descriptor.number, static_cast<std::int64_t>(status.st_dev),
          static_cast<std::int64_t>(status.st_ino)};
}

void open(Descriptor& descriptor, const Address& address, std::size_t file_bytes) {
  const std::string path =
      "/proc/" + std::to_string(address.process) + "/fd/" + std::to_string(address.descriptor);
  descriptor.number = uninterrupted([&] { return ::open(path.c_str(), O_RDWR | O_CLOEXEC); });
  struct stat status{};
  const bool found = descriptor.number >= 0 && fstat(descriptor.number, &status) == 0;
  if (found && address.device == static_cast<std::int64_t>(status.st_dev) &&
      address.inode == static_cast<std::int64_t>(status.st_ino))
    return;
  if (found) errno = ENXIO;
  const bool is_scarce = errno == EMFILE || errno == ENFILE || errno == ENOMEM;
  fail("open the shared memory of another process", file_bytes,
       is_scarce
           ? path
           : path +
                 ": the processes of a node must see one another, and belong to one user; if they run in "
                 "containers of their own, set OUTCORE_NODES=processes");
}

}  // namespace

std::unique_ptr<Segment> node_memory(Transport& transport, std::size_t size_bytes) {
  const std::size_t file_bytes = SharedParts::file_bytes(transport.size(), size_bytes);
  Descriptor descriptor;
  Address address;
  agree(transport, [&] {
    if (transport.rank() == 0) address = make(descriptor, file_bytes);
  });
  transport.broadcast(std::as_writable_bytes(std::span(&address, 1)), 0);
  std::shared_ptr<const SharedParts> parts;
  agree(transport, [&] {  // the descriptor stays open until all have opened it
    if (transport.rank() != 0) open(descriptor, address, file_bytes);
    parts = std::make_shared<SharedParts>(descriptor.number, transport.size(), size_bytes);
  });
  return memory_segment(std::move(parts), transport.rank(), PartReach::direct);
}

}  // namespace outcore::transport

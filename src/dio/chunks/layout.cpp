// The layout of an array as text for messages, and as bytes for other groups of processes.
#include <cerrno>
#include <cstring>

#include "dio/chunks/client.hpp"
#include "outcore/error.hpp"

namespace outcore::dio {
namespace {

constexpr char magic[8] = {'O', 'C', 'a', 'r', 'r', 'a', 'y', '1'};
constexpr std::int64_t max_owners = 65536;

/// What a handle begins with; the owners follow, as int32.
struct Head {
  char magic[8];
  std::uint64_t number;
  std::int64_t shape[max_rank], chunk[max_rank], group;
  std::int32_t owners;
  std::uint8_t rank, type, read_only, unused;
};

[[noreturn]] void refuse() {
  throw Error(EINVAL,
              {.attempted = "attach to a disk array", .detail = "the bytes are no handle of a disk array"});
}

}  // namespace

std::string ChunkLayout::text() const {
  return std::string(name(type)) + " disk array " + grid.shape().text();
}

std::string ChunkLayout::encode() const {
  Head head{};
  std::memcpy(head.magic, magic, sizeof magic);
  head.number = number;
  for (int i = 0; i < grid.shape().rank(); ++i) {
    head.shape[i] = grid.shape()[i];
    head.chunk[i] = grid.chunk()[i];
  }
  head.group = grid.group();
  head.owners = static_cast<std::int32_t>(owners.size());
  head.rank = static_cast<std::uint8_t>(grid.shape().rank());
  head.type = static_cast<std::uint8_t>(type);
  head.read_only = read_only ? 1 : 0;
  std::string bytes(reinterpret_cast<const char*>(&head), sizeof head);
  for (const std::int32_t owner : owners) bytes.append(reinterpret_cast<const char*>(&owner), sizeof owner);
  return bytes;
}

ChunkLayout ChunkLayout::decode(const std::string& bytes) {
  Head head{};
  if (bytes.size() < sizeof head) refuse();
  std::memcpy(&head, bytes.data(), sizeof head);
  const auto last_type = static_cast<std::uint8_t>(ElementType::complex128);
  if (std::memcmp(head.magic, magic, sizeof magic) != 0 || head.rank < 1 || head.rank > max_rank ||
      head.owners < 1 || head.owners > max_owners || head.type < 1 || head.type > last_type ||
      bytes.size() != sizeof head + static_cast<std::size_t>(head.owners) * sizeof(std::int32_t))
    refuse();
  ChunkLayout layout;
  layout.number = head.number;
  layout.type = static_cast<ElementType>(head.type);
  layout.read_only = head.read_only != 0;
  layout.grid =
      ChunkGrid(Extents(std::span(head.shape, head.rank)), Extents(std::span(head.chunk, head.rank)),
                size_bytes(layout.type), head.owners, head.group);
  layout.owners.resize(static_cast<std::size_t>(head.owners));
  for (std::size_t i = 0; i < layout.owners.size(); ++i) {
    std::int32_t owner = 0;
    std::memcpy(&owner, bytes.data() + sizeof head + i * sizeof owner, sizeof owner);
    if (owner < 0) refuse();
    layout.owners[i] = owner;
  }
  return layout;
}

}  // namespace outcore::dio

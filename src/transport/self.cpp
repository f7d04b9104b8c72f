#include <cerrno>
#include <cstring>

#include "outcore/error.hpp"
#include "transport/host.hpp"
#include "transport/memory_messages.hpp"
#include "transport/memory_segment.hpp"

namespace outcore::transport {
namespace {

class Self final : public Transport {
 public:
  std::string description() const override { return "self"; }
  std::string host() const override { return host_name(); }
  void barrier() override {}
  void broadcast(std::span<std::byte>, int) override {}
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    if (!mine.empty()) std::memcpy(all.data(), mine.data(), mine.size());
  }
  void all_reduce(std::span<double>, Reduction) override {}
  void all_reduce(std::span<std::int64_t>, Reduction) override {}
  std::unique_ptr<Transport> split(int color, int) override { return color < 0 ? nullptr : self(); }
  std::unique_ptr<Messages> messages() override {
    return memory_messages(std::make_shared<PostOffice>(1), 0);
  }
  std::unique_ptr<Segment> allocate(std::size_t size_bytes, bool) override {
    return memory_segment(std::make_shared<SharedParts>(1, size_bytes), 0, PartReach::direct);
  }
};

}  // namespace

std::unique_ptr<Transport> self() {
  return std::make_unique<Self>();
}

}  // namespace outcore::transport

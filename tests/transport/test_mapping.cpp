// Mapped memory, and the descriptions that locate shared memory.
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "outcore/extend/transport.hpp"
#include "support/check.hpp"
#include "transport/mapping.hpp"

using outcore::transport::ForeignMapping;
using outcore::transport::Mapping;
using outcore::transport::see_shared;
using outcore::transport::shared_location;
using outcore::transport::SharedLocation;

namespace {

constexpr std::size_t size = 3 << 12;
constexpr std::size_t large = 4 * outcore::transport::huge_page_bytes;

class File {
 public:
  explicit File(std::size_t bytes = size) : number_(memfd_create("test", MFD_CLOEXEC)) {
    check::equal(ftruncate(number_, static_cast<off_t>(bytes)), 0);
  }
  ~File() { ::close(number_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  [[nodiscard]] int number() const { return number_; }

 private:
  int number_;
};

std::byte* mapped(int flags, int file) {
  void* const data = mmap(nullptr, size, PROT_READ | PROT_WRITE, flags, file, 0);
  check::is_true(data != MAP_FAILED);
  return static_cast<std::byte*>(data);
}

}  // namespace

TEST("a location in shared memory is told by file and offset, and seen there") {
  const File file;
  const Mapping shared(file.number(), size);
  for (std::size_t i = 0; i < size; ++i) shared.data()[i] = std::byte(i % 251);
  const auto location = shared_location({shared.data() + 5000, 4000});
  check::is_true(location.has_value());
  check::equal(location->offset, 5000);
  check::is_true(see_shared(*location, 4000).get() == shared.data() + 5000);
}

TEST("bytes outside of shared memory, or across its end, have no location") {
  const File file;
  const Mapping shared(file.number(), size), alone(size);
  check::is_true(!shared_location({alone.data(), 100}));
  check::is_true(!shared_location({shared.data() + size - 10, 11}));
  check::is_true(shared_location({shared.data() + size - 10, 10}).has_value());
}

TEST("nothing is seen at a location that is not mapped, or past its end") {
  std::optional<SharedLocation> location;
  const File file;
  {
    const Mapping shared(file.number(), size);
    location = shared_location({shared.data(), 100});
    check::is_true(see_shared(*location, 100) != nullptr);
    SharedLocation late = *location;
    late.offset = size - 99;
    check::is_true(!see_shared(late, 100));
  }
  check::is_true(!see_shared(*location, 100), "it was unmapped");
  check::is_true(!see_shared(outcore::transport::nowhere, 0));
}

TEST("what is seen stays mapped when the mapping has gone") {
  const File file;
  std::shared_ptr<std::byte> seen;
  {
    const Mapping shared(file.number(), size);
    shared.data()[5000] = std::byte{42};
    seen = see_shared(*shared_location({shared.data() + 5000, 10}), 10);
  }
  check::is_true(*seen == std::byte{42});
}

TEST("what is large begins at a huge page, and all of it can be used") {
  const File file(large + 5000);
  const Mapping shared(file.number(), large + 5000), alone(large + 5000);
  for (const Mapping* each : {&shared, &alone}) {
    check::equal(reinterpret_cast<std::uintptr_t>(each->data()) % outcore::transport::huge_page_bytes, 0U);
    each->data()[large + 4999] = std::byte{7};
    check::is_true(each->data()[large + 4999] == std::byte{7});
  }
}

TEST("populating keeps what is there, takes memory inside of the range only, and others see the same") {
  const File file(large);
  const Mapping shared(file.number(), large), other(file.number(), large);
  constexpr std::size_t page = 4096, begin = outcore::transport::huge_page_bytes + page,
                        bytes = large - outcore::transport::huge_page_bytes - 2 * page;
  other.data()[begin] = std::byte{1};
  other.data()[large / 2 + 12345] = std::byte{2};
  shared.populate(shared.data() + begin, bytes);
  check::is_true(shared.data()[begin] == std::byte{1});
  check::is_true(shared.data()[large / 2 + 12345] == std::byte{2});
  check::is_true(shared.data()[large / 2 + 12346] == std::byte{0});
  shared.data()[large / 2] = std::byte{3};
  check::is_true(other.data()[large / 2] == std::byte{3});
  std::vector<unsigned char> there(large / page);
  check::equal(mincore(shared.data(), large, there.data()), 0);
  for (std::size_t i = 0; i < begin / page; ++i) check::equal(there[i] & 1, 0);
}

TEST("what others have mapped and share is known, as long as it is told") {
  const File file;
  std::byte* const data = mapped(MAP_SHARED, file.number());
  data[5000] = std::byte{42};
  {
    const ForeignMapping foreign(data + 100);
    const auto location = shared_location({data + 5000, 10});
    check::is_true(location.has_value());
    const Mapping own(file.number(), size);  // it is known by the first one
    check::is_true(see_shared(*location, 10).get() == data + 5000);
  }
  check::is_true(!shared_location({data + 5000, 10}));
  munmap(data, size);
}

TEST("what others have mapped for themselves alone is not known") {
  std::byte* const data = mapped(MAP_PRIVATE | MAP_ANONYMOUS, -1);
  const ForeignMapping foreign(data);
  check::is_true(!shared_location({data, 10}));
  munmap(data, size);
}

TEST("what others have mapped is not given up while somebody sees it") {
  const File file;
  std::byte* const data = mapped(MAP_SHARED, file.number());
  auto foreign = std::make_unique<ForeignMapping>(data);
  auto seen = see_shared(*shared_location({data, 10}), 10);
  std::atomic<bool> given_up{false};
  std::thread other([&] {
    foreign.reset();
    given_up = true;
  });
  while (shared_location({data, 10})) std::this_thread::yield();
  check::is_true(!given_up);
  seen.reset();
  other.join();
  munmap(data, size);
}

TEST_MAIN

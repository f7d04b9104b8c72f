// Memory that is mapped, and what tells where shared memory is.
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <optional>
#include <vector>

#include "check.hpp"
#include "transport/mapping.hpp"

using outcore::transport::copy_shared;
using outcore::transport::Mapping;
using outcore::transport::shared_place;
using outcore::transport::SharedPlace;

namespace {

constexpr std::size_t size = 3 << 12;

class File {
 public:
  File() : number_(memfd_create("test", MFD_CLOEXEC)) { check::equal(ftruncate(number_, size), 0); }
  ~File() { ::close(number_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  [[nodiscard]] int number() const { return number_; }

 private:
  int number_;
};

}  // namespace

TEST("a place in shared memory is told by file and offset, and copied from") {
  const File file;
  const Mapping shared(file.number(), size);
  for (std::size_t i = 0; i < size; ++i) shared.data()[i] = std::byte(i % 251);
  const auto place = shared_place({shared.data() + 5000, 4000});
  check::is_true(place.has_value());
  check::equal(place->offset, 5000);
  std::vector<std::byte> got(4000);
  check::is_true(copy_shared(*place, got));
  check::equal(std::memcmp(got.data(), shared.data() + 5000, got.size()), 0);
}

TEST("bytes outside of shared memory, or across its end, have no place") {
  const File file;
  const Mapping shared(file.number(), size), alone(size);
  check::is_true(!shared_place({alone.data(), 100}));
  check::is_true(!shared_place({shared.data() + size - 10, 11}));
  check::is_true(shared_place({shared.data() + size - 10, 10}).has_value());
}

TEST("nothing is copied from a place that is not mapped, or past its end") {
  std::optional<SharedPlace> place;
  std::vector<std::byte> got(100);
  const File file;
  {
    const Mapping shared(file.number(), size);
    place = shared_place({shared.data(), got.size()});
    check::is_true(copy_shared(*place, got));
    SharedPlace late = *place;
    late.offset = size - 99;
    check::is_true(!copy_shared(late, got));
  }
  check::is_true(!copy_shared(*place, got), "it was unmapped");
}

TEST_MAIN

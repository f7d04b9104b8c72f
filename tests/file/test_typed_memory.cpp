// Memory of any plain type in exclusive, shared and record files.
#include <algorithm>
#include <cerrno>
#include <complex>
#include <string>
#include <utility>
#include <vector>

#include "file/shared_support.hpp"
#include "outcore/exclusive_file.hpp"
#include "outcore/record_file.hpp"
#include "support/mdspan.hpp"

using namespace shared;
using file::ExclusiveFile;
using file::RecordFile;
using outcore::test::MdSpan;

namespace {

struct Integral {
  std::int32_t i, j, k, l;
  double value;
  friend bool operator==(const Integral&, const Integral&) = default;
};

template <class File, class Memory>
concept ReadsInto = requires(File& file, Memory memory) { file.read(memory, 0); };
template <class File>
concept WritesTemporaries =
    requires(File& file, std::vector<double> values) { file.write_async(std::move(values), 0); };
template <class File>
concept PutsTemporaries =
    requires(File& file, std::vector<double> values) { file.put_async(0, std::move(values)); };

static_assert(ReadsInto<ExclusiveFile, std::vector<double>> && ReadsInto<SharedFile, std::span<Integral>>);
static_assert(!ReadsInto<ExclusiveFile, const std::vector<double>> &&
              !ReadsInto<SharedFile, std::vector<std::string>>);
static_assert(!WritesTemporaries<ExclusiveFile> && !WritesTemporaries<SharedFile>);
static_assert(!PutsTemporaries<RecordFile>);

}  // namespace

TEST("an exclusive file takes elements of any plain type") {
  const TemporaryDirectory scratch;
  ExclusiveFile file("typed", {.scratch = scratch.path()});
  const std::vector<Integral> integrals{{1, 2, 3, 4, 0.5}, {5, 6, 7, 8, 0.25}};
  check::equal(file.write(integrals, 0), 48);
  check::equal(file.write(std::vector<std::complex<float>>{{1, 2}}, 48), 8);
  std::vector<Integral> found(2);
  check::equal(file.read(found, 0), 48);
  check::is_true(found == integrals);
  std::complex<float> last[1];
  check::equal(file.read_async(last, 48).wait(), 8);
  check::equal(last[0], std::complex<float>(1, 2));
  file.erase();
}

TEST("an mdspan without gaps is moved in the order of memory, and one with gaps is refused") {
  const TemporaryDirectory scratch;
  ExclusiveFile file("typed", {.scratch = scratch.path()});
  std::vector<double> values{0, 1, 2, 3, 4, 5}, found(6);
  file.write_async(MdSpan<const double, 2, Kokkos::layout_left>(values.data(), 2, 3), 0).wait();
  file.read(MdSpan<double, 2>(found.data(), 3, 2), 0);
  check::is_true(found == values);
  const auto part =
      Kokkos::submdspan(MdSpan<double, 2>(found.data(), 3, 2), std::pair(0, 3), std::pair(0, 1));
  const Error error = check::throws<Error>([&] { file.read(part, 0); });
  check::equal(error.errno_value(), EINVAL);
  check::contains(error.what(), "the elements of the mdspan do not lie one after the other");
  file.erase();
}

TEST("a shared file takes elements, and lists of ranges of them") {
  run_all([](World& world) {
    SharedFile file(world, "typed", local());
    const std::vector<double> mine(100, world.rank());
    file.write_async(mine, 800 * world.rank()).wait();
    world.barrier();
    std::vector<double> found(100), first(1);
    const int next = (world.rank() + 1) % world.size();
    file.read(found, 800 * next);
    check::is_true(std::ranges::all_of(found, [&](double each) { return each == next; }));
    const std::vector<ReadRange> ranges{{.offset = 800 * next, .memory = first},
                                        {0, std::span(found).first(2)}};
    file.read(ranges);
    check::is_true(first[0] == next && found[0] == 0 && found[2] == next);
    world.barrier();
    file.close();
  });
}

TEST("a record has the elements that were put") {
  run_all([](World& world) {
    RecordFile file(world, "typed", {.records = 8, .placement = Placement::local});
    const int own = world.rank(), next = (own + 1) % world.size();
    const std::vector<float> values(static_cast<std::size_t>(10 + own), 0.5f);
    if (own % 2 == 0)
      file.put(own, values);
    else
      file.put_async(own, values).wait();
    world.barrier();
    check::is_true(file.get<float>(next) == std::vector<float>(static_cast<std::size_t>(10 + next), 0.5f));
    std::vector<float> found(20);
    check::equal(file.get_async(next, found).wait(), 4 * (10 + next));
    if (next % 2 == 1) {
      const Error error = check::throws<Error>([&] { (void)file.get<double>(next); });
      check::contains(error.what(), "no whole number of elements of 8 bytes");
    }
    world.barrier();
    file.close();
  });
}

TEST_MAIN

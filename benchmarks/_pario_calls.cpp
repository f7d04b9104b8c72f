// What a call of the C interface costs beside the same one in C++: prints microseconds a call, C then C++, of
// reads of 64 bytes that lie in memory, and of one element of a global array. Argument: scratch directory.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <vector>

#include "outcore/exclusive_file.hpp"
#include "outcore/global_array.hpp"
#include "outcore/outcore.h"
#include "outcore/world.hpp"

namespace {

constexpr int calls = 20000, rounds = 15;

void check(int code) {
  if (code == OC_OK) return;
  std::fprintf(stderr, "%s\n", oc_strerror(code));
  std::exit(1);
}

template <class Call>
double microseconds(Call call) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < calls; ++i) call(i);
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count() / calls;
}

/// The median difference of turns, after that of C.
template <class InC, class InCpp>
void compare(InC in_c, InCpp in_cpp) {
  std::vector<double> c, differences;
  for (int i = 0; i < rounds; ++i) {
    const double one = microseconds(in_c), other = microseconds(in_cpp);
    c.push_back(one);
    differences.push_back(one - other);
  }
  std::ranges::sort(c);
  std::ranges::sort(differences);
  std::printf("%.4f %.4f\n", c[rounds / 2], differences[rounds / 2]);
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) return 2;
  std::array<std::byte, 64> record{};
  std::vector<double> values(1 << 16, 1.5);
  const auto bytes = static_cast<std::int64_t>(values.size() * sizeof(double));

  oc_eaf_options options = {sizeof options, arguments[1], 0, 0, 0};
  int file = 0;
  check(oc_eaf_open("calls_c", &options, &file));
  check(oc_eaf_write(file, 0, values.data(), bytes));
  outcore::file::ExclusiveFileOptions its_options;
  its_options.scratch = arguments[1];
  outcore::file::ExclusiveFile in_cpp("calls_cpp", its_options);
  in_cpp.write(std::as_bytes(std::span(values)), 0);
  const auto offset = [&](int i) { return std::int64_t{64} * (i % 8000); };
  compare([&](int i) { check(oc_eaf_read(file, offset(i), record.data(), 64, nullptr)); },
          [&](int i) { (void)in_cpp.read(record, offset(i)); });
  check(oc_eaf_delete(file));
  in_cpp.erase();

  int world = 0, array = 0;
  const std::int64_t shape[1] = {1000}, begin[1] = {7}, end[1] = {8};
  check(oc_world_self(nullptr, &world));
  check(oc_ga_create(world, OC_FLOAT64, 1, shape, nullptr, &array));
  auto its_world = outcore::World::self();
  outcore::GlobalArray its_array(its_world, {1000}, outcore::ElementType::float64);
  double value = 0;
  compare([&](int) { check(oc_ga_get(array, begin, end, &value, nullptr)); },
          [&](int) { its_array.get({{7}, {8}}, {reinterpret_cast<std::byte*>(&value), {8}}); });
  check(oc_ga_close(array));
  check(oc_world_close(world));
}

// The places of bytes of a striped file, against dealing them out one by one.
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "dio/stripes/stripes.hpp"
#include "outcore/error.hpp"
#include "support/check.hpp"

using outcore::Error;
using outcore::dio::Stripes;

TEST("stripes are dealt out round robin") {
  const Stripes stripes(4096, 3);
  for (std::int64_t k = 0; k < 20; ++k) {
    const auto location = stripes.locate(k * 4096 + 17);
    check::equal(location.component, static_cast<int>(k % 3));
    check::equal(location.offset, k / 3 * 4096 + 17);
  }
}

TEST("no two bytes share a place") {
  const Stripes stripes(4096, 3);
  std::set<std::pair<int, std::int64_t>> places;
  for (std::int64_t offset = 0; offset < 10 * 4096; ++offset) {
    const auto location = stripes.locate(offset);
    places.emplace(location.component, location.offset);
  }
  check::equal(places.size(), 10U * 4096U);
}

TEST("parts cover a range in order, each in one piece of a component") {
  std::mt19937_64 random(1);
  for (int turn = 0; turn < 200; ++turn) {
    const Stripes stripes(static_cast<std::int64_t>(1 + random() % 4) * 4096,
                          static_cast<int>(1 + random() % 5));
    const auto offset = static_cast<std::int64_t>(random() % 100'000),
               size = static_cast<std::int64_t>(random() % 100'000);
    std::int64_t done = 0;
    stripes.for_each_part(offset, size,
                          [&](int component, std::int64_t at, std::int64_t from, std::int64_t part) {
                            check::equal(from, done);
                            for (const std::int64_t k : {std::int64_t{0}, part - 1}) {
                              const auto location = stripes.locate(offset + from + k);
                              check::equal(location.component, component);
                              check::equal(location.offset, at + k);
                            }
                            done += part;
                          });
    check::equal(done, size);
  }
}

TEST("lengths of components are those of their last bytes") {
  for (const int components : {1, 2, 3})
    for (const std::int64_t length : {0, 1, 4095, 4096, 4097, 3 * 4096, 7 * 4096 + 5}) {
      const Stripes stripes(4096, components);
      std::vector<std::int64_t> expected(static_cast<std::size_t>(components));
      for (std::int64_t offset = 0; offset < length; ++offset) {
        const auto location = stripes.locate(offset);
        auto& bytes = expected[static_cast<std::size_t>(location.component)];
        bytes = std::max(bytes, location.offset + 1);
      }
      for (int c = 0; c < components; ++c)
        check::equal(stripes.component_bytes(c, length), expected[static_cast<std::size_t>(c)]);
    }
}

TEST("requests of whole pages fit into stripes") {
  for (const std::int64_t typical : {4096, 8192, 32 << 10, 64 << 10, 1 << 20}) {
    const std::int64_t stripe = Stripes::suitable_bytes(typical);
    check::equal(stripe % typical, 0);
    check::is_true(stripe >= Stripes::min_bytes && stripe <= Stripes::max_bytes);
  }
}

TEST("stripes are multiples of pages whatever the requests") {
  for (const std::int64_t typical :
       {std::int64_t{0}, std::int64_t{1}, std::int64_t{10'000}, std::int64_t{1} << 40}) {
    const std::int64_t stripe = Stripes::suitable_bytes(typical);
    check::equal(stripe % Stripes::unit_bytes, 0);
    check::is_true(stripe > 0 && stripe <= Stripes::max_bytes);
  }
}

TEST("stripes of no size are refused") {
  check::throws<Error>([] { Stripes(0, 1); });
  check::throws<Error>([] { Stripes(1000, 1); });
  check::throws<Error>([] { Stripes(4096, 0); });
  check::throws<Error>([] { (void)Stripes::suitable_bytes(-1); });
}

TEST_MAIN

// Boxes of tiled arrays, against the elements themselves.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "outcore/error.hpp"
#include "support/check.hpp"
#include "tensor/tiled_boxes.hpp"

using namespace outcore;
using namespace outcore::tensor;

namespace {

constexpr std::int64_t size = sizeof(double);
constexpr int n = 7;
const std::vector<std::int64_t> cuts{0, 3, 5, 7};

double element(std::int64_t i, std::int64_t j) {  // antisymmetric
  return double(i * i - j * j) + 0.25 * double(i - j);
}

/// Tiles (I, J) with I <= J of an antisymmetric matrix, of which (0, 2) and (2, 0) are zero.
std::shared_ptr<const TileTable> table() {
  std::vector<TileTable::Source> sources;
  const std::int32_t numbers[3][3] = {{0, 1, -1}, {1, 2, 3}, {-1, 3, 4}};
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) sources.push_back({numbers[i][j], i > j ? 1 : 0});
  return std::make_shared<const TileTable>(std::vector{cuts, cuts}, sources,
                                           std::vector<TileTable::Image>{{{0, 1}, 1}, {{1, 0}, -1}});
}

bool is_zero(std::int64_t i, std::int64_t j) {
  return (i < 3 && j >= 5) || (j < 3 && i >= 5);
}

/// An array of one dimension whose requests complete in their waits. It counts the requests under way.
class Late : public Boxes {
 public:
  explicit Late(std::vector<double>& elements) : elements_(elements) {}
  void get(const Box& box, const Strided& to, Waits& waits) override {
    begin(box);
    waits.emplace_back([this, box, to] {
      end(box);
      std::copy(elements_.begin() + box.begin[0], elements_.begin() + box.end[0],
                reinterpret_cast<double*>(to.data));
    });
  }
  void put(const Box& box, const Strided& from, bool add, Waits& waits) override {
    begin(box);
    waits.emplace_back([this, box, from, add] {
      end(box);
      const auto* values = reinterpret_cast<const double*>(from.data);
      for (std::int64_t i = 0; i < box.volume(); ++i) {
        double& target = elements_[static_cast<std::size_t>(box.begin[0] + i)];
        target = add ? target + values[i] : values[i];
      }
    });
  }
  std::int64_t under_way = 0, most = 0;

 private:
  void begin(const Box& box) { most = std::max(most, under_way += box.volume() * size); }
  void end(const Box& box) { under_way -= box.volume() * size; }
  std::vector<double>& elements_;
};

std::vector<double> stored() {
  std::vector<double> all;
  const int tiles[5][2] = {{0, 0}, {0, 1}, {1, 1}, {1, 2}, {2, 2}};
  for (const auto& [a, b] : tiles)
    for (auto i = cuts[static_cast<std::size_t>(a)]; i < cuts[static_cast<std::size_t>(a) + 1]; ++i)
      for (auto j = cuts[static_cast<std::size_t>(b)]; j < cuts[static_cast<std::size_t>(b) + 1]; ++j)
        all.push_back(element(i, j));
  return all;
}

std::shared_ptr<Boxes> in_memory(std::vector<double>& all) {
  return std::make_shared<MemoryBoxes>(Strided{reinterpret_cast<std::byte*>(all.data()), {size}},
                                       ElementType::float64);
}

void wait(Waits& waits) {
  for (const auto& each : waits) each();
  waits.clear();
}

void check_box(TiledBoxes& boxes, const Box& box, bool turned) {
  const Extents shape = box.shape();
  std::vector<double> found(static_cast<std::size_t>(shape.product()), 0.0);
  const Extents strides = turned ? Extents{size, size * shape[0]} : Extents{size * shape[1], size};
  Waits waits;
  boxes.get(box, {reinterpret_cast<std::byte*>(found.data()), strides}, waits);
  wait(waits);
  for (std::int64_t i = 0; i < shape[0]; ++i)
    for (std::int64_t j = 0; j < shape[1]; ++j) {
      const double value = found[static_cast<std::size_t>((i * strides[0] + j * strides[1]) / size)];
      const std::int64_t row = box.begin[0] + i, column = box.begin[1] + j;
      check::equal(value, is_zero(row, column) ? 0.0 : element(row, column));
    }
}

}  // namespace

TEST("boxes are made of stored tiles and of their images") {
  auto all = stored();
  const auto late = std::make_shared<Late>(all);
  for (const std::shared_ptr<Boxes>& flat : {in_memory(all), std::shared_ptr<Boxes>(late)})
    for (const std::int64_t most : {std::int64_t{1}, std::int64_t{100}, std::int64_t{1} << 20}) {
      TiledBoxes boxes(table(), flat, {}, ElementType::float64, most);
      for (std::size_t a = 0; a < 3; ++a)
        for (std::size_t b = a + 1; b < 4; ++b)
          for (const bool turned : {false, true}) {
            check_box(boxes, {{cuts[a], 0}, {cuts[b], n}}, turned);
            check_box(boxes, {{0, cuts[a]}, {n, cuts[b]}}, turned);
          }
    }
  check::equal(late->under_way, 0);
}

TEST("tiles on their way take no more memory than they may") {
  auto all = stored();
  const auto flat = std::make_shared<Late>(all);
  TiledBoxes boxes(table(), flat, {}, ElementType::float64, 10 * size);
  check_box(boxes, {{0, 0}, {n, n}}, true);
  check::is_true(flat->most <= 10 * size);
}

TEST("stored tiles are put and added") {
  std::vector<double> values(n * n);
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j) values[static_cast<std::size_t>(i * n + j)] = element(i, j);
  for (const bool is_late : {false, true})
    for (const bool turned : {false, true}) {
      std::vector<double> all(stored().size(), 1.0);
      const auto late = std::make_shared<Late>(all);
      TiledBoxes boxes(table(), is_late ? std::shared_ptr<Boxes>(late) : in_memory(all), {},
                       ElementType::float64, 10 * size);
      auto* data = reinterpret_cast<std::byte*>(values.data());
      const Extents rows{n * size, size}, columns{size, n * size};
      Waits waits;
      boxes.put({{0, 0}, {n, n}}, {data, rows}, false, waits);
      boxes.put({{0, 0}, {n, n}}, {data, turned ? columns : rows}, true, waits);
      wait(waits);
      const auto once = stored();
      for (std::size_t i = 0; i < all.size(); ++i) check::equal(all[i], turned ? 0.0 : 2 * once[i]);
      check::is_true(late->most <= 10 * size);
    }
}

TEST("a box of one stored tile in memory is seen where it lies") {
  auto all = stored();
  TiledBoxes boxes(table(), in_memory(all), {}, ElementType::float64, 1);
  const auto found = boxes.view({{0, 3}, {3, 5}});
  check::is_true(found && found->data == reinterpret_cast<std::byte*>(all.data() + 9));
  check::is_true(found->stride_bytes == Extents({2 * size, size}));
  check::is_true(!boxes.view({{3, 0}, {5, 3}}), "an image");
  check::is_true(!boxes.view({{0, 0}, {3, 5}}), "two tiles");
  check::is_true(!boxes.view({{0, 5}, {3, 7}}), "zero");
}

TEST("memory of a tile serves the next of its size, and no more is kept than may be in use") {
  TileMemory tiles(100);
  auto first = tiles.take(60);
  const std::byte* const place = first.get();
  check::is_true(tiles.has_room(40) && !tiles.has_room(41));
  tiles.give(std::move(first), 60);
  check::is_true(tiles.free_bytes() == 60);
  auto again = tiles.take(60);
  check::is_true(again.get() == place && tiles.free_bytes() == 0);
  tiles.give(std::move(again), 60);
  auto other = tiles.take(50);  // there is no room beside the free one
  check::is_true(tiles.free_bytes() == 0);
  tiles.give(std::move(other), 50);
  check::is_true(tiles.free_bytes() == 50);
  auto large = tiles.take(200);  // alone, it may be larger than all
  check::is_true(!tiles.has_room(1));
  tiles.give(std::move(large), 200);
  check::is_true(tiles.free_bytes() == 0 && tiles.has_room(100));
}

TEST("a box that cuts a tile, and a table of other tiles are refused") {
  auto all = stored();
  TiledBoxes boxes(table(), in_memory(all), {}, ElementType::float64, 1);
  Waits waits;
  check::throws<Error>(
      [&] { boxes.get({{0, 0}, {2, 3}}, {reinterpret_cast<std::byte*>(all.data()), {size, size}}, waits); });
  check::throws<Error>([] { TileTable({cuts}, {{0, 0}}, {{{0}, 1}}); });
  check::throws<Error>([] { TileTable({{0, 1}}, {{0, 1}}, {{{0}, 1}}); });
  check::throws<Error>([] { TileTable({{0, 1}}, {{5, 0}}, {{{0}, 1}}); });
}

TEST_MAIN

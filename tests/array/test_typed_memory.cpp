// Transfers of global, disk, node and block-sparse arrays with typed memory of the caller.
#include <algorithm>
#include <cerrno>
#include <complex>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "array/arrays.hpp"
#include "outcore/disk_array.hpp"
#include "outcore/error.hpp"
#include "outcore/node_array.hpp"
#include "outcore/sparse_array.hpp"
#include "support/check.hpp"
#include "support/mdspan.hpp"
#include "support/temporary_directory.hpp"

using namespace outcore;
using namespace outcore::test;

namespace {

const Extents shape{4, 6};

/// Runs `body` with an array of each kind and of each of these element types, on two nodes of one process
/// each. Process 0 has put 0, 1, 2, ... into the array.
template <class Body>
void with_arrays(Body body) {
  const TemporaryDirectory directory;
  in_worlds(2, options_in(directory, true), [&](World& world) {
    const auto each = [&]<class T>(T) {
      std::vector<T> numbers(24);
      for (int k = 0; k < 24; ++k) numbers[std::size_t(k)] = static_cast<T>(k);
      GlobalArray global(world, shape, element_type_of<T>);
      if (world.rank() == 0) global.put({{0, 0}, {4, 6}}, numbers);
      global.sync();
      body(world, global, T{});
      global.sync();
      DiskArray disk(world, shape, element_type_of<T>);
      if (world.rank() == 0) disk.put({{0, 0}, {4, 6}}, numbers);
      disk.sync();
      world.barrier();
      body(world, disk, T{});
      world.barrier();
      disk.close();
    };
    each(float{});
    each(double{});
    each(std::complex<float>{});
    each(std::complex<double>{});
    each(std::int32_t{});
    each(std::int64_t{});
  });
}

std::string refusal(const std::function<void()>& body) {
  const Error error = check::throws<Error>(body);
  check::equal(error.errno_value(), EINVAL);
  return error.what();
}

}  // namespace

TEST("vectors, C arrays and spans have a box in C order") {
  with_arrays([](World&, auto& array, auto zero) {
    using T = decltype(zero);
    std::vector<T> block(4);
    array.get({{1, 2}, {3, 4}}, block);
    check::is_true(block == std::vector<T>{T(8), T(9), T(14), T(15)});
    T row[6] = {};
    array.get({{3, 0}, {4, 6}}, row);
    check::equal(row[5], T(23));
    array.get_async({{0, 0}, {1, 2}}, std::span(row).subspan(1, 2)).wait();
    check::is_true(row[0] == T(18) && row[1] == T(0) && row[2] == T(1) && row[3] == T(21));
  });
}

TEST("slices take every step-th element") {
  with_arrays([](World&, auto& array, auto zero) {
    using T = decltype(zero);
    std::vector<T> found(4);
    array.get({{0, 1}, {4, 6}, {3, 3}}, found);
    check::is_true(found == std::vector<T>{T(1), T(4), T(19), T(22)});
  });
}

TEST("an mdspan in Fortran order is a transposition") {
  with_arrays([](World&, auto& array, auto zero) {
    using T = decltype(zero);
    std::vector<T> memory(6);
    array.get({{1, 0}, {3, 3}}, MdSpan<T, 2, Kokkos::layout_left>(memory.data(), 2, 3));
    check::is_true(memory == std::vector<T>{T(6), T(12), T(7), T(13), T(8), T(14)});
  });
}

TEST("a part of an mdspan is moved, and what is beside it stays") {
  with_arrays([](World& world, auto& array, auto zero) {
    using T = decltype(zero);
    std::vector<T> memory(25, T(7));
    const MdSpan<T, 2> whole(memory.data(), 5, 5);
    array.get({{2, 1}, {4, 4}}, Kokkos::submdspan(whole, std::pair(1, 3), std::pair(1, 4)));
    for (int i = 0; i < 5; ++i)
      for (int j = 0; j < 5; ++j) {
        const bool inside = 1 <= i && i < 3 && 1 <= j && j < 4;
        check::equal(memory[std::size_t(5 * i + j)], inside ? T(6 * (i + 1) + j) : T(7));
      }
    world.barrier();  // all have read
    // The part is put into a column of the array, through an mdspan of const elements with steps.
    if (world.rank() == 1) {
      const MdSpan<const T, 2> constant(memory.data(), 5, 5);
      array.put_async({{0, 5}, {3, 6}}, Kokkos::submdspan(constant, std::pair(1, 4), std::pair(1, 2))).wait();
      T column[3];
      array.get({{0, 5}, {3, 6}}, column);
      check::is_true(column[0] == T(13) && column[1] == T(19) && column[2] == T(7));
    }
  });
}

TEST("accumulates multiply by a factor of any type") {
  with_arrays([](World& world, auto& array, auto zero) {
    using T = decltype(zero);
    const std::vector<T> ones(24, T(1));
    array.accumulate({{0, 0}, {4, 6}}, ones);
    array.accumulate_async({{0, 0}, {4, 6}}, ones, 2).wait();
    array.accumulate({{0, 0}, {4, 6}}, ones, T(3));
    array.sync();
    world.barrier();
    std::vector<T> found(24);
    array.get({{0, 0}, {4, 6}}, found);
    for (int k = 0; k < 24; ++k) check::equal(found[std::size_t(k)], T(k + 2 * 6));
    world.barrier();
  });
}

TEST("elements of another type are refused, and both types are named") {
  with_arrays([](World&, auto& array, auto zero) {
    using T = decltype(zero);
    const auto says = [&](const std::string& text) {
      check::contains(text, "array of " + std::string(name(element_type_of<T>)));
      check::contains(text, "the memory has elements of int16");
    };
    std::vector<short> others(24);
    const Box all = Box::whole(shape);
    says(refusal([&] { array.get(all, others); }));
    says(refusal([&] { (void)array.get_async(all, others); }));
    says(refusal([&] { array.put(all, others); }));
    says(refusal([&] { (void)array.put_async(all, others); }));
    says(refusal([&] { array.accumulate(all, others); }));
    says(refusal([&] { (void)array.accumulate_async(all, others); }));
    says(refusal([&] { array.get(all, MdSpan<short, 2>(others.data(), 4, 6)); }));
  });
}

TEST("memory of another size, a layout without strides and a factor of another kind are refused") {
  with_arrays([](World&, auto& array, auto zero) {
    using T = decltype(zero);
    std::vector<T> memory(24);
    const Box box{{0, 0}, {2, 4}};
    check::contains(refusal([&] { array.get(box, memory); }), "the memory has 24 elements, the box 8");
    check::contains(refusal([&] { array.put(box, MdSpan<T, 2>(memory.data(), 4, 2)); }),
                    "the mdspan has the shape [4, 2]");
    const MdSpan<T, 2, TiledLayout> tiled(memory.data(), {Kokkos::dextents<std::int64_t, 2>(2, 4)});
    check::contains(refusal([&] { array.get(box, tiled); }), "no strides");
    if constexpr (std::integral<T> || std::floating_point<T>)
      check::contains(
          refusal([&] { array.accumulate(box, std::span(memory).first(8), std::complex(0.0, 1.0)); }),
          "does not have the factor (0,1)");
  });
}

// ---- who keeps the memory

template <class Array>
concept PutsTemporaries =
    requires(Array& array, std::vector<double> values) { array.put_async(Slices{}, std::move(values)); };
template <class Array>
concept PutsNamed = requires(Array& array, std::vector<double> values) { array.put_async(Slices{}, values); };
template <class Array>
concept GetsConst = requires(Array& array, const std::vector<double> values) { array.get(Slices{}, values); };

static_assert(PutsNamed<GlobalArray> && !PutsTemporaries<GlobalArray> && !GetsConst<GlobalArray>);
static_assert(PutsNamed<DiskArray> && !PutsTemporaries<DiskArray> && !GetsConst<DiskArray>);

TEST("a request needs the memory, and not the mdspan, the box and the factor that it was given") {
  with_arrays([](World& world, auto& array, auto zero) {
    using T = decltype(zero);
    std::vector<T> memory(24, T(1));
    std::vector<Request> requests;
    for (int row = 0; row < 4; ++row) {
      const MdSpan<T, 2> view(memory.data() + 6 * row, 1, 6);
      if (world.rank() == row % 2)
        requests.push_back(array.accumulate_async({{row, 0}, {row + 1, 6}}, view, T(row)));
    }
    wait_all(requests);
    array.sync();
    world.barrier();
    array.get({{0, 0}, {4, 6}}, memory);
    for (int k = 0; k < 24; ++k) check::equal(memory[std::size_t(k)], T(k + k / 6));
    world.barrier();
  });
}

TEST("a blocking put takes a temporary") {
  with_arrays([](World& world, auto& array, auto zero) {
    using T = decltype(zero);
    if (world.rank() == 1) {
      array.put({{0, 0}, {1, 3}}, std::vector<T>(3, T(5)));
      T found[3];
      array.get({{0, 0}, {1, 3}}, found);
      check::is_true(found[0] == T(5) && found[2] == T(5));
    }
  });
}

// ---- what single kinds of arrays have

TEST("the own part of a global array is a span of its elements") {
  with_arrays([](World&, auto& array, auto zero) {
    using T = decltype(zero);
    if constexpr (std::same_as<std::remove_cvref_t<decltype(array)>, GlobalArray>) {
      const Box own = array.distribution().patch(array.world().rank());
      const std::span<T> part = array.template local<T>();
      check::equal(part.size(), own.volume());
      check::equal(part[0], T(6 * own.begin[0] + own.begin[1]));
      check::contains(refusal([&] { (void)array.template local<short>(); }), "global array as int16");
    }
  });
}

TEST("single elements are gathered and scattered") {
  in_worlds(2, {.memory_bytes = 1 << 26, .node_for_each_process = true}, [](World& world) {
    GlobalArray array(world, shape, ElementType::float64);
    const std::vector<std::int64_t> indices{0, 0, 3, 5, 1, 2};
    if (world.rank() == 1) array.scatter(indices, std::vector{1.0, 2.0, 3.0});
    array.sync();
    array.scatter_accumulate(indices, std::vector{10.0, 20.0, 30.0}, 0.5);
    array.sync();
    std::vector<double> found(3);
    array.gather(indices, found);
    check::is_true(found == std::vector{11.0, 22.0, 33.0});
    check::contains(refusal([&] { array.gather(indices, std::span(found).first(2)); }),
                    "2 elements, the box 3");
    std::vector<float> others(3);
    check::contains(refusal([&] { array.gather(indices, others); }), "elements of float32");
    array.sync();
  });
}

TEST("a node array is a span of its elements") {
  in_worlds(2, {.memory_bytes = 1 << 26}, [](World& world) {
    NodeArray array(world, {2, 3}, ElementType::complex64);
    const std::span<std::complex<float>> all = array.view<std::complex<float>>();
    check::equal(all.size(), 6U);
    if (world.rank() == 1) all[4] = {1, 2};
    array.barrier();
    const MdSpan<std::complex<float>, 2> matrix(all.data(), 2, 3);
    check::equal(all[4], std::complex<float>(1, 2));
    check::contains(refusal([&] { (void)array.view<double>(); }),
                    "node array as float64: Invalid argument (they are of type complex64)");
    array.barrier();
  });
}

TEST("every process moves its own block of a disk array from and to an mdspan") {
  const TemporaryDirectory directory;
  in_worlds(2, options_in(directory, true), [](World& world) {
    DiskArray disk(world, shape, ElementType::float32);
    const Box half{{2 * world.rank(), 0}, {2 * world.rank() + 2, 6}};
    std::vector<float> memory(12);
    std::iota(memory.begin(), memory.end(), 100.0f * static_cast<float>(world.rank()));
    disk.write_all_async(memory, half).wait();
    std::vector<float> back(12);
    disk.read_all_async(MdSpan<float, 2, Kokkos::layout_left>(back.data(), 2, 6), half).wait();
    for (std::size_t k = 0; k < 12; ++k) check::equal(back[k], memory[k % 2 * 6 + k / 2]);
    disk.close();
  });
}

TEST("memory of another type at one process of a collective transfer is the error of all") {
  const TemporaryDirectory directory;
  in_worlds(2, options_in(directory), [](World& world) {
    DiskArray disk(world, shape, ElementType::float64);
    std::vector<double> good(12, 1.0);
    std::vector<float> bad(12);
    const Box half{{2 * world.rank(), 0}, {2 * world.rank() + 2, 6}};
    for (const bool writes : {true, false}) {
      const auto memory = [&]() -> Elements {
        if (world.rank() == 1) return bad;
        return good;
      }();
      const auto text = refusal(
          [&] { (writes ? disk.write_all_async(memory, half) : disk.read_all_async(memory, half)).wait(); });
      check::contains(text, "the memory has elements of float32");
    }
    disk.write_all_async(good, half).wait();
    disk.close();
  });
}

TEST("tiles of a block-sparse array are moved in C order") {
  const TemporaryDirectory directory;
  in_worlds(2, options_in(directory, true), [](World& world) {
    const TileMap map({{0, 2, 5}, {0, 3}}, {true, false});
    BlockSparseArray array(world, map, ElementType::complex128);
    using T = std::complex<double>;
    std::vector<T> tile(6, T(1, 2)), found(6);
    if (world.rank() == 0) {
      array.put_tile({0, 0}, tile);
      array.accumulate_tile_async({0, 0}, tile, 3).wait();
      array.accumulate_tile({0, 0}, std::vector<T>(6, 1), T(0, 1));
    }
    array.sync();
    world.barrier();
    array.get_tile({0, 0}, MdSpan<T, 2>(found.data(), 2, 3));
    for (const T& each : found) check::equal(each, T(4, 9));
    std::vector<T> zero(9, 5);
    array.get_tile_async({1, 0}, zero).wait();
    check::is_true(std::ranges::all_of(zero, [](T each) { return each == 0.0; }));
    check::contains(
        refusal([&] { array.get_tile({0, 0}, MdSpan<T, 2, Kokkos::layout_left>(found.data(), 2, 3)); }),
        "C order without gaps");
    check::contains(refusal([&] { array.get_tile({0, 0}, zero); }), "the memory has 9 elements, the box 6");
    std::vector<float> others(6);
    check::contains(refusal([&] { array.put_tile({0, 0}, others); }), "the memory has elements of float32");
    world.barrier();
    array.storage().close();
  });
}

TEST_MAIN

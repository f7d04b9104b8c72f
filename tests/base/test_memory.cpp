// Which types are accepted as memory of the caller: spans, vectors, C arrays and mdspans; and which are not.
#include <cerrno>
#include <string>
#include <string_view>
#include <vector>

#include "outcore/error.hpp"
#include "outcore/memory.hpp"
#include "support/check.hpp"
#include "support/mdspan.hpp"

using namespace outcore;
using outcore::test::ByStride;
using outcore::test::MdSpan;
using outcore::test::TiledLayout;

namespace {

template <class Memory, class Given>
inline constexpr bool accepts = std::is_convertible_v<Given, Memory>;

/// An accessor that computes elements when they are read.
struct Negated : Kokkos::default_accessor<double> {
  using reference = double;
  using offset_policy = Negated;
  double access(const double* first, std::size_t i) const { return -first[i]; }
};
/// An accessor of every second element.
struct Spread : Kokkos::default_accessor<double> {
  struct data_handle_type {
    double* first;
  };
  using offset_policy = Spread;
  double& access(data_handle_type from, std::size_t i) const { return from.first[2 * i]; }
  data_handle_type offset(data_handle_type from, std::size_t i) const { return {from.first + 2 * i}; }
};
/// An accessor that does the same, but whose data handle is an ordinary pointer.
struct Moved : Kokkos::default_accessor<double> {
  using offset_policy = Moved;
  double& access(double* first, std::size_t i) const { return first[2 * i]; }
};
template <class Accessor>
using Accessed = Kokkos::mdspan<double, Kokkos::dextents<std::int64_t, 1>, Kokkos::layout_right, Accessor>;

std::string refusal(const std::function<void()>& body) {
  const Error error = check::throws<Error>(body);
  check::equal(error.errno_value(), EINVAL);
  return error.what();
}

}  // namespace

// ---- what compiles

static_assert(accepts<ConstElements, std::vector<double>&> && accepts<ConstElements, std::vector<double>>);
static_assert(accepts<ConstElements, const std::vector<double>&> &&
              accepts<ConstElements, std::span<const int>>);
static_assert(accepts<ConstElements, const double (&)[3]> && accepts<ConstElements, std::array<float, 2>&>);
static_assert(accepts<Elements, std::vector<double>&> && accepts<Elements, std::span<std::complex<float>>>);
static_assert(accepts<ConstElements, Elements>);
static_assert(accepts<Elements, MdSpan<double, 3>> && accepts<ConstElements, MdSpan<const double, 3>>);

static_assert(!accepts<Elements, const std::vector<double>&> && !accepts<Elements, std::span<const double>>);
static_assert(!accepts<Elements, MdSpan<const double, 3>>);
static_assert(!accepts<Elements, std::vector<double>>);  // nobody would have what was read
static_assert(!accepts<ConstElements, std::vector<std::string>&>);
static_assert(!accepts<ConstElements, std::vector<bool>&> && !accepts<ConstElements, std::vector<char>&>);
static_assert(!accepts<ConstElements, std::vector<long double>&> &&
              !accepts<ConstElements, std::vector<unsigned>&>);
static_assert(!accepts<ConstElements, std::vector<double*>&> &&
              !accepts<ConstElements, std::span<std::byte>>);
static_assert(!accepts<ConstElements, double (&)[2][3]>);
static_assert(!accepts<ConstElements, double> && !accepts<ConstElements, double*>);
static_assert(!accepts<ConstElements, Accessed<Negated>> && !accepts<ConstElements, Accessed<Spread>>);
static_assert(!accepts<ConstElements, MdSpan<double, 9>> && !accepts<ConstElements, MdSpan<double, 0>>);

static_assert(accepts<PlainMemory, std::vector<char>&> && !accepts<PlainMemory, const std::vector<char>&>);
static_assert(accepts<ConstPlainMemory, std::string_view> && accepts<ConstPlainMemory, std::vector<int>>);
static_assert(!accepts<ConstPlainMemory, std::vector<std::string>&>);
static_assert(accepts<PlainMemory, MdSpan<int, 2>> && !accepts<PlainMemory, MdSpan<const int, 2>>);

static_assert(accepts<Factor, int> && accepts<Factor, std::complex<float>> && !accepts<Factor, bool>);

static_assert(element_type_of<long> == ElementType::int64 &&
              element_type_of<long long> == ElementType::int64);
static_assert(element_type_of<short> == ElementType::int16 && element_type_of<int> == ElementType::int32);
static_assert(element_type_of<signed char> == ElementType::int8);
static_assert(element_type_of<unsigned char> == ElementType::uint8);

TEST("each type of elements has its C++ type") {
  for (int number = 1; number <= 9; ++number) {
    const auto type = static_cast<ElementType>(number);
    visit(type, [&](auto element) {
      check::equal(name(element_type_of<decltype(element)>), name(type));
      check::equal(sizeof element, size_bytes(type));
    });
  }
}

// ---- memory of arrays

TEST("a range has all elements of a box in C order") {
  std::vector<float> values(6);
  const Strided memory = Elements(values).strided({2, 3}, ElementType::float32, "disk array");
  check::is_true(memory.data == std::as_writable_bytes(std::span(values)).data());
  check::equal(memory.stride_bytes.text(), "[12, 4]");
  check::equal(Elements(values).shape().text(), "[6]");
}

TEST("an mdspan has the strides of its layout") {
  std::vector<double> values(60);
  const auto strides = [](const ConstElements& memory) {
    return memory.strided({3, 4, 5}, ElementType::float64, "disk array").stride_bytes.text();
  };
  check::equal(strides(MdSpan<double, 3>(values.data(), 3, 4, 5)), "[160, 40, 8]");
  check::equal(strides(MdSpan<const double, 3, Kokkos::layout_left>(values.data(), 3, 4, 5)), "[8, 24, 96]");
  const MdSpan<double, 2> whole(values.data(), 6, 10);
  const auto part = Kokkos::submdspan(whole, std::pair(1, 3), std::pair(2, 6));
  const Strided memory = ConstElements(part).strided({2, 4}, ElementType::float64, "disk array");
  check::equal(memory.stride_bytes.text(), "[80, 8]");
  check::is_true(memory.data == std::as_writable_bytes(std::span(values)).data() + 8 * 12);
}

TEST("elements of another type are refused, and both types are named") {
  std::vector<float> values(6);
  const auto text =
      refusal([&] { (void)ConstElements(values).strided({2, 3}, ElementType::complex128, "global array"); });
  check::contains(text, "transfer of [2, 3] elements of a global array of complex128");
  check::contains(text, "the memory has elements of float32");
}

TEST("memory of another size or shape is refused") {
  std::vector<double> values(6);
  const auto refused = [](const ConstElements& memory) {
    return refusal([&] { (void)memory.strided({2, 3}, ElementType::float64, "disk array"); });
  };
  check::contains(refused(std::span(values).first(5)), "the memory has 5 elements, the box 6");
  check::contains(refused(MdSpan<double, 2>(values.data(), 3, 2)), "the mdspan has the shape [3, 2]");
  check::contains(refused(MdSpan<double, 1>(values.data(), 6)), "the mdspan has the shape [6]");
}

TEST("an mdspan without strides is refused") {
  std::vector<double> values(8);
  const MdSpan<double, 2, TiledLayout> tiled(values.data(), {Kokkos::dextents<std::int64_t, 2>(2, 4)});
  check::contains(
      refusal([&] { (void)ConstElements(tiled).strided({2, 4}, ElementType::float64, "disk array"); }),
      "the layout of the mdspan has no strides");
}

TEST("an mdspan whose accessor looks elsewhere is refused") {
  std::vector<double> values(8);
  const Accessed<Moved> moved(values.data(), {Kokkos::dextents<std::int64_t, 1>(4)}, {});
  check::contains(
      refusal([&] { (void)ConstElements(moved).strided({4}, ElementType::float64, "disk array"); }),
      "the accessor of the mdspan has its elements elsewhere");
  check::contains(refusal([&] { (void)PlainMemory(moved); }), "do not lie one after the other");
}

TEST("elements that share memory can be read and not be written") {
  std::vector<double> values(3);
  const MdSpan<double, 2, Kokkos::layout_stride> repeated(
      values.data(), ByStride(Kokkos::dextents<std::int64_t, 2>(4, 3), std::array<std::int64_t, 2>{0, 1}));
  check::equal(ConstElements(repeated).strided({4, 3}, ElementType::float64, "x").stride_bytes.text(),
               "[0, 8]");
  check::contains(refusal([&] { (void)Elements(repeated).strided({4, 3}, ElementType::float64, "x"); }),
                  "elements of the mdspan share memory");
}

TEST("what takes C order alone refuses other strides") {
  std::vector<double> values(6);
  const MdSpan<double, 2, Kokkos::layout_left> left(values.data(), 2, 3);
  check::contains(
      refusal([&] { (void)ConstElements(left).contiguous({2, 3}, ElementType::float64, "tile"); }),
      "strides of [8, 16] bytes");
  const MdSpan<double, 2, Kokkos::layout_left> row(values.data(), 1, 6);
  check::is_true(ConstElements(row).contiguous({1, 6}, ElementType::float64, "tile") ==
                 std::as_writable_bytes(std::span(values)).data());
}

// ---- factors

namespace {

template <class T>
T as(Factor factor) {
  T value;
  std::memcpy(&value, factor.as(element_type_of<T>).bytes.data(), sizeof value);
  return value;
}

}  // namespace

TEST("a factor has any type that has its value") {
  check::equal(as<double>(2), 2.0);
  check::equal(as<float>(0.1), 0.1f);
  check::equal(as<int>(-3.0), -3);
  check::equal(as<std::complex<float>>(0.5), std::complex<float>(0.5));
  check::equal(as<std::complex<double>>(std::complex<double>(1, 2)), std::complex<double>(1, 2));
  check::equal(as<double>(std::complex<float>(4, 0)), 4.0);
  check::equal(as<std::int64_t>(std::numeric_limits<std::int64_t>::max()),
               std::numeric_limits<std::int64_t>::max());
  check::equal(as<std::int64_t>(-9223372036854775808.0), std::numeric_limits<std::int64_t>::min());
}

TEST("a factor that a type does not have is refused") {
  check::contains(refusal([] { (void)as<int>(0.5); }),
                  "an array of int32: Invalid argument (that type does not have the factor 0.5)");
  check::contains(refusal([] { (void)as<double>(std::complex<double>(0, 1)); }), "factor (0,1)");
  (void)refusal([] { (void)as<int>(std::int64_t{1} << 31); });
  (void)refusal([] { (void)as<std::int64_t>(9223372036854775808.0); });
  (void)refusal([] { (void)as<float>(1e300); });
  (void)refusal([] { (void)as<std::uint8_t>(-1); });
}

// ---- memory of files

TEST("a file has the bytes of plain elements, in the order of memory") {
  struct Pair {
    int first;
    float second;
  };
  std::vector<Pair> pairs(3);
  check::equal(PlainMemory(pairs).size(), 24U);
  const MdSpan<double, 2, Kokkos::layout_left> left(nullptr, 2, 3);
  check::equal(ConstPlainMemory(left).size(), 48U);
  check::equal(ConstPlainMemory(std::string_view("text")).size(), 4U);
}

TEST("an mdspan with gaps is refused by files") {
  std::vector<double> values(12);
  const MdSpan<double, 2> whole(values.data(), 3, 4);
  const auto part = Kokkos::submdspan(whole, std::pair(0, 2), std::pair(0, 3));
  check::contains(refusal([&] { (void)PlainMemory(part); }), "do not lie one after the other");
  check::equal(PlainMemory(Kokkos::submdspan(whole, std::pair(0, 0), std::pair(0, 3))).size(), 0U);
}

TEST_MAIN

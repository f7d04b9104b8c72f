// Transposition of square tiles whose rows are cache lines.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

namespace outcore {

/// Elements along each side of a tile: a cache line of 64 bytes.
template <class Element>
inline constexpr std::int64_t transpose_tile_size = 64 / static_cast<std::int64_t>(sizeof(Element));

#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define OUTCORE_SHUFFLES
#endif
#endif

#ifdef OUTCORE_SHUFFLES

/// Vectors of 16 bytes, which every x86-64 and ARM has; wider ones gain nothing, memory is the limit.
template <class Element>
struct TileVectors {
  static constexpr std::size_t count = 16 / sizeof(Element);
  using Vector [[gnu::vector_size(16)]] = Element;

  template <std::size_t... I>
  static Vector low(const Vector& a, const Vector& b, std::index_sequence<I...>) {
    return __builtin_shufflevector(a, b, (I % 2 ? count + I / 2 : I / 2)...);
  }
  template <std::size_t... I>
  static Vector high(const Vector& a, const Vector& b, std::index_sequence<I...>) {
    return __builtin_shufflevector(a, b, (I % 2 ? count + (count + I) / 2 : (count + I) / 2)...);
  }

  /// Transposes a square of vectors (as many as each has elements): each round interleaves the halves.
  static void transpose(Vector* v) {
    constexpr std::make_index_sequence<count> lanes;
    for (int round = 0; round < std::countr_zero(count); ++round) {
      Vector next[count];
      for (std::size_t i = 0; i < count / 2; ++i) {
        next[2 * i] = low(v[i], v[i + count / 2], lanes);
        next[2 * i + 1] = high(v[i], v[i + count / 2], lanes);
      }
      std::memcpy(v, next, sizeof(next));
    }
  }
};

/// Lines of the source, `from_stride` bytes apart, become columns of the target, whose lines are `to_stride`
/// bytes apart. All of the source is read first: its lines and those of the target may share places in the
/// cache.
template <class Element>
void transpose_tile(std::byte* to, std::int64_t to_stride, const std::byte* from, std::int64_t from_stride) {
  constexpr std::int64_t side = transpose_tile_size<Element>;
  alignas(64) std::byte lines[side][64];
  for (std::int64_t j = 0; j < side; ++j) std::memcpy(lines[j], from + j * from_stride, 64);
  if constexpr (sizeof(Element) == 16) {
    for (std::int64_t i = 0; i < side; ++i)
      for (std::int64_t j = 0; j < side; ++j) std::memcpy(to + i * to_stride + j * 16, lines[j] + i * 16, 16);
  } else {
    using V = TileVectors<Element>;
    constexpr auto lanes = static_cast<std::int64_t>(V::count);
    for (std::int64_t i = 0; i < side; i += lanes)
      for (std::int64_t j = 0; j < side; j += lanes) {
        typename V::Vector v[lanes];
        for (std::int64_t k = 0; k < lanes; ++k)
          std::memcpy(&v[k], lines[j + k] + i * std::int64_t(sizeof(Element)), 16);
        V::transpose(v);
        for (std::int64_t k = 0; k < lanes; ++k)
          std::memcpy(to + (i + k) * to_stride + j * std::int64_t(sizeof(Element)), &v[k], 16);
      }
  }
}

#else

template <class Element>
void transpose_tile(std::byte* to, std::int64_t to_stride, const std::byte* from, std::int64_t from_stride) {
  constexpr std::int64_t side = transpose_tile_size<Element>;
  for (std::int64_t i = 0; i < side; ++i)
    for (std::int64_t j = 0; j < side; ++j)
      std::memcpy(to + i * to_stride + j * std::int64_t(sizeof(Element)),
                  from + j * from_stride + i * std::int64_t(sizeof(Element)), sizeof(Element));
}

#endif

}  // namespace outcore

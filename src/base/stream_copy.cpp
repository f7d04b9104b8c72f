#include "base/stream_copy.hpp"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <cstring>

namespace outcore {
namespace {

/// The part of the caches that a core can use, with room for other data in them.
constexpr std::int64_t too_much_bytes = 8 << 20;

thread_local bool streams = false;

}  // namespace

void stream_copy(std::byte* to, const std::byte* from, std::size_t size_bytes) noexcept {
#ifdef __SSE2__
  // A partly streamed line costs ten times as much as a stored one.
  constexpr std::size_t line = 64;
  const std::size_t ahead = -reinterpret_cast<std::uintptr_t>(to) % line;
  if (size_bytes >= ahead + line) {
    std::memcpy(to, from, ahead);
    for (to += ahead, from += ahead, size_bytes -= ahead; size_bytes >= line;
         to += line, from += line, size_bytes -= line) {
      auto* const next = reinterpret_cast<__m128i*>(to);
      const auto* const source = reinterpret_cast<const __m128i*>(from);
      const __m128i parts[] = {_mm_loadu_si128(source), _mm_loadu_si128(source + 1),
                               _mm_loadu_si128(source + 2), _mm_loadu_si128(source + 3)};
      for (int i = 0; i < 4; ++i) _mm_stream_si128(next + i, parts[i]);
    }
  }
#endif
  std::memcpy(to, from, size_bytes);
}

void end_streams() noexcept {
#ifdef __SSE2__
  _mm_sfence();
#endif
}

StreamedCopies::StreamedCopies(std::int64_t all_bytes) noexcept : before_(streams) {
  streams = before_ || all_bytes >= too_much_bytes;
}

StreamedCopies::~StreamedCopies() {
  if (streams && !before_) end_streams();
  streams = before_;
}

bool StreamedCopies::wanted() noexcept {
  return streams;
}

}  // namespace outcore

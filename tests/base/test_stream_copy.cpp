// Copies past the caches: every byte, whatever the alignment, and nothing beyond.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/stream_copy.hpp"
#include "outcore/box.hpp"
#include "support/check.hpp"

using namespace outcore;

TEST("every size and alignment is copied, and nothing beyond") {
  std::vector<std::byte> from(1024), to(1024);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i % 251 + 1);
  for (std::size_t at = 0; at < 70; at += 3)
    for (std::size_t shift = 0; shift < 20; shift += 7)
      for (std::size_t size = 0; size < 400; size += 11) {
        std::ranges::fill(to, std::byte{0});
        stream_copy(to.data() + at, from.data() + shift, size);
        end_streams();
        for (std::size_t i = 0; i < to.size(); ++i) {
          const bool inside = i >= at && i < at + size;
          if (to[i] != (inside ? from[shift + i - at] : std::byte{0}))
            check::is_true(false, "a byte is not what it should be");
        }
      }
}

TEST("much is streamed, little is not, and what is within much is") {
  check::is_true(!StreamedCopies::wanted());
  {
    const StreamedCopies little(1000);
    check::is_true(!StreamedCopies::wanted());
    const StreamedCopies much(std::int64_t{1} << 30);
    check::is_true(StreamedCopies::wanted());
    const StreamedCopies within(1000);
    check::is_true(StreamedCopies::wanted());
  }
  check::is_true(!StreamedCopies::wanted());
}

TEST("strided copies that are streamed are the same as those that are not") {
  const Extents count{40, 3, 301}, from_stride{3 * 301 * 8, 301 * 8, 8}, to_stride{3 * 333 * 8, 333 * 8, 8};
  std::vector<std::uint64_t> from(40 * 3 * 301), plain(40 * 3 * 333), streamed(40 * 3 * 333);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = i + 1;
  const auto copy = [&](std::vector<std::uint64_t>& to) {
    copy_strided(reinterpret_cast<std::byte*>(to.data()), to_stride,
                 reinterpret_cast<const std::byte*>(from.data()), from_stride, count, 8);
  };
  copy(plain);
  {
    const StreamedCopies streams(std::int64_t{1} << 30);
    copy(streamed);
  }
  check::is_true(plain == streamed);
}

TEST_MAIN

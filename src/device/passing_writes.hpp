// Incomplete writes on a file that do not go through its buffer. Their ranges must not be read ahead: the
// bytes read might be the old ones, and would be served after the write is complete.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/byte_range.hpp"
#include "outcore/request.hpp"

namespace outcore::device {

/// Used by one thread at a time.
class PassingWrites {
 public:
  /// A blocking write, until `ended` is told of the same range.
  void began(std::int64_t offset, std::int64_t size_bytes) { blocking_.push_back({offset, size_bytes}); }
  void ended(std::int64_t offset, std::int64_t size_bytes) noexcept {
    const auto found = std::ranges::find(blocking_, ByteRange{offset, size_bytes});
    if (found == blocking_.end()) return;
    *found = blocking_.back();
    blocking_.pop_back();
  }
  /// A nonblocking write, until it is done.
  void began(std::int64_t offset, std::int64_t size_bytes, Request request) {
    if (nonblocking_.size() >= look_at_) forget_done();
    nonblocking_.push_back({{offset, size_bytes}, std::move(request)});
  }

  [[nodiscard]] bool meet(std::int64_t from, std::int64_t to) {
    forget_done();
    const auto meets = [&](const ByteRange& range) { return from < range.end() && to > range.offset; };
    return std::ranges::any_of(blocking_, meets) ||
           std::ranges::any_of(nonblocking_, [&](const Requested& one) { return meets(one.range); });
  }

 private:
  struct Requested {
    ByteRange range;
    Request request;
  };

  /// Checks each request a bounded number of times, however many are under way.
  void forget_done() noexcept {
    std::erase_if(nonblocking_, [](const Requested& one) { return one.request.done(); });
    look_at_ = std::max<std::size_t>(16, 2 * nonblocking_.size());
  }

  std::vector<ByteRange> blocking_;
  std::vector<Requested> nonblocking_;
  std::size_t look_at_ = 16;
};

}  // namespace outcore::device

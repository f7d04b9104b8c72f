#include "outcore/transport/transport.hpp"

#include <cstring>

namespace outcore::transport {

Operation& Operation::operator=(Operation&& other) noexcept {
  if (this != &other) {
    Operation ended(std::move(*this));  // waits
    state_ = std::move(other.state_);
  }
  return *this;
}

Operation::~Operation() {
  if (!state_ || !state_.here()) return;
  try {
    state_->wait();
  } catch (...) {  // nobody asked for the result
  }
}

void Operation::wait() {
  if (!state_) return;
  state_.check();
  const auto state = std::move(state_);  // complete also if it throws
  state->wait();
}

bool Operation::test() {
  if (!state_) return true;
  if (!state_->test()) return false;
  state_ = {};
  return true;
}

void Segment::clear(std::int64_t offset, std::int64_t size_bytes) {
  std::memset(local_ + offset, 0, static_cast<std::size_t>(size_bytes));
  flush();
}

}  // namespace outcore::transport

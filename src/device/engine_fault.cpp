// The fault engine: a task is wrapped into one whose operations and results have been tampered with.
#include <sys/uio.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <mutex>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "device/fault.hpp"
#include "device/undo_log.hpp"
#include "outcore/error.hpp"

namespace outcore::device {
namespace {

using Kind = Operation::Kind;

/// The fate of one operation.
struct Altered {
  std::optional<std::int64_t> at_once;  ///< this result, without an operation
  Operation operation;
  std::vector<iovec> list;
  std::int64_t pause_ns = 0;                 ///< to be spent first
  std::optional<std::int64_t> pretended;     ///< reported in place of a success
  std::optional<std::uint64_t> flipped_bit;  ///< bit in the bytes read, modulo their size
  std::uint64_t undo_mark = 0;

  /// A shortened list: the first bytes only.
  void shorten(std::int64_t size_bytes) {
    std::vector<iovec> shorter;
    auto left = static_cast<std::size_t>(size_bytes);
    for (unsigned i = 0; i < operation.list_count && left > 0; ++i) {
      iovec part = operation.list[i];
      part.iov_len = std::min(part.iov_len, left);
      left -= part.iov_len;
      shorter.push_back(part);
    }
    list = std::move(shorter);
    operation.list = list.data();
    operation.list_count = static_cast<unsigned>(list.size());
    operation.size_bytes = size_bytes;
  }
};

void flip(const Altered& altered, std::int64_t bytes_read) {
  auto byte = static_cast<std::int64_t>((*altered.flipped_bit / 8) % static_cast<std::uint64_t>(bytes_read));
  for (unsigned i = 0; i < altered.operation.list_count; ++i) {
    const iovec& part = altered.operation.list[i];
    if (byte < static_cast<std::int64_t>(part.iov_len)) {
      static_cast<std::byte*>(part.iov_base)[byte] ^= std::byte(1U << (*altered.flipped_bit % 8));
      return;
    }
    byte -= static_cast<std::int64_t>(part.iov_len);
  }
}

class Faults final : public FaultEngine {
 public:
  Faults(std::unique_ptr<Engine> inner, FaultPlan plan)
      : inner_(std::move(inner)), plan_(std::move(plan)), random_(plan_.seed) {}

  const char* name() const noexcept override { return "fault"; }
  void submit(std::shared_ptr<Task> task) override;
  std::int64_t run(const Operation& operation) noexcept override;
  void stop() noexcept override { inner_->stop(); }
  std::int64_t crash() override { return undo_.undo(); }
  std::uint64_t injected() const noexcept override { return injected_.load(); }

  Altered alter(const Operation& operation) noexcept;
  std::int64_t report(const Altered& altered, std::int64_t value) noexcept;

 private:
  Fault decide(const Operation& operation);
  void apply(Fault fault, Altered& altered);
  std::int64_t some_bytes(std::int64_t size_bytes);
  void limit_to_space(Altered& altered);

  std::unique_ptr<Engine> inner_;
  FaultPlan plan_;
  UndoLog undo_;
  std::mutex mutex_;  ///< guards the next three
  std::mt19937_64 random_;
  std::uint64_t number_ = 0;
  std::int64_t taken_bytes_ = 0;
  std::atomic<std::uint64_t> injected_{0};
};

class FaultyTask final : public Task {
 public:
  FaultyTask(Faults& faults, std::shared_ptr<Task> task) : faults_(faults), task_(std::move(task)) {}

  const Operation* next() noexcept override {
    if (pausing_) {
      pausing_ = false;
      return &altered_.operation;
    }
    while (const Operation* wanted = task_->next()) {
      altered_ = faults_.alter(*wanted);
      if (altered_.at_once) {
        task_->result(*altered_.at_once);
        continue;
      }
      if (altered_.pause_ns == 0) return &altered_.operation;
      pausing_ = true;
      pause_ = {.kind = Kind::pause, .size_bytes = altered_.pause_ns};
      return &pause_;
    }
    return nullptr;
  }

  void result(std::int64_t value) noexcept override {
    if (!pausing_) task_->result(faults_.report(altered_, value));
  }

 private:
  Faults& faults_;
  std::shared_ptr<Task> task_;
  Altered altered_;
  Operation pause_;
  bool pausing_ = false;  ///< the operation under way is a pause, before the one that was asked for
};

void Faults::submit(std::shared_ptr<Task> task) {
  inner_->submit(std::make_shared<FaultyTask>(*this, std::move(task)));
}

std::int64_t Faults::run(const Operation& operation) noexcept {
  const Altered altered = alter(operation);
  if (altered.at_once) return *altered.at_once;
  if (altered.pause_ns > 0) inner_->run({.kind = Kind::pause, .size_bytes = altered.pause_ns});
  return report(altered, inner_->run(altered.operation));
}

Altered Faults::alter(const Operation& operation) noexcept {
  Altered altered;
  altered.operation = operation;
  try {
    std::lock_guard lock(mutex_);
    const Fault fault = decide(operation);
    if (fault != Fault::none) injected_.fetch_add(1);
    apply(fault, altered);
    if (operation.kind == Kind::write && !altered.at_once) limit_to_space(altered);
    if (plan_.lose_unsynced && operation.kind == Kind::write && !altered.at_once)
      undo_.before_write(altered.operation);
    if (operation.kind == Kind::sync) altered.undo_mark = undo_.mark();
  } catch (const Error& error) {
    altered.at_once = -error.errno_value();
  }
  return altered;
}

Fault Faults::decide(const Operation& operation) {
  if (plan_.script) return plan_.script(number_++, operation);
  const bool moves = operation.kind == Kind::read || operation.kind == Kind::write;
  if (!moves && operation.kind != Kind::sync) return Fault::none;
  std::uniform_real_distribution<double> uniform(0, 1);
  double left = uniform(random_);
  const auto hits = [&left](double chance) { return (left -= chance) < 0; };
  if (hits(plan_.interrupted)) return Fault::interrupted;
  if (hits(plan_.io_error)) return Fault::io_error;
  if (hits(plan_.slow)) return Fault::slow;
  if (moves && hits(plan_.short_transfer)) return Fault::short_transfer;
  if (operation.kind == Kind::write && hits(plan_.torn_write)) return Fault::torn_write;
  if (operation.kind == Kind::read && hits(plan_.bit_flip)) return Fault::bit_flip;
  return Fault::none;
}

void Faults::apply(Fault fault, Altered& altered) {
  const std::int64_t size = altered.operation.size_bytes;
  switch (fault) {
    case Fault::none:
      break;
    case Fault::interrupted:
      altered.at_once = -EINTR;
      break;
    case Fault::io_error:
      altered.at_once = -EIO;
      break;
    case Fault::full:
      altered.at_once = -ENOSPC;
      break;
    case Fault::slow:
      altered.pause_ns = plan_.slow_ns;
      break;
    case Fault::short_transfer:
      altered.shorten(some_bytes(size));
      break;
    case Fault::torn_write:
      altered.pretended = size;
      altered.shorten(some_bytes(size));
      break;
    case Fault::bit_flip:
      altered.flipped_bit = random_();
      break;
  }
}

/// A size less than the given one, if possible: whole blocks of 4096 if there is more than one, for direct
/// I/O.
std::int64_t Faults::some_bytes(std::int64_t size_bytes) {
  const std::int64_t unit = size_bytes > 4096 ? 4096 : size_bytes % 512 == 0 ? 512 : 1;
  const std::int64_t units = (size_bytes - 1) / unit;
  if (units < 1) return size_bytes;
  return unit * std::uniform_int_distribution<std::int64_t>(1, units)(random_);
}

void Faults::limit_to_space(Altered& altered) {
  if (plan_.full_after_bytes < 0) return;
  const std::int64_t space = (plan_.full_after_bytes - taken_bytes_) / 512 * 512;
  if (space <= 0) {
    altered.at_once = -ENOSPC;
    injected_.fetch_add(1);
    return;
  }
  if (altered.operation.size_bytes > space) altered.shorten(space);
  taken_bytes_ += altered.operation.size_bytes;
}

std::int64_t Faults::report(const Altered& altered, std::int64_t value) noexcept {
  if (value < 0) return value;
  if (altered.operation.kind == Kind::sync && plan_.lose_unsynced) {
    try {
      undo_.synced(altered.operation.fd, altered.undo_mark);
    } catch (const Error& error) {
      return -error.errno_value();
    }
  }
  if (altered.flipped_bit && value > 0) flip(altered, value);
  return altered.pretended.value_or(value);
}

}  // namespace

std::unique_ptr<FaultEngine> make_fault_engine(std::unique_ptr<Engine> inner, FaultPlan plan) {
  return std::make_unique<Faults>(std::move(inner), std::move(plan));
}

}  // namespace outcore::device

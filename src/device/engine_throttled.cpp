// The throttled engine: a task is wrapped into one that pauses before it passes a result on.
#include <cerrno>
#include <optional>
#include <utility>

#include "device/throttle.hpp"
#include "outcore/trace.hpp"

namespace outcore::device {
namespace {

using Kind = Operation::Kind;

class Throttled final : public Engine {
 public:
  Throttled(std::unique_ptr<Engine> inner, const Throttle& throttle)
      : clock_(throttle), inner_(std::move(inner)) {}

  const char* name() const noexcept override { return inner_->name(); }
  void submit(std::shared_ptr<Task> task) override;
  std::int64_t run(const Operation& operation) noexcept override;
  void stop() noexcept override { inner_->stop(); }

  /// The time when an operation ends on the emulated disks, by its arrival and result; nothing if it does not
  /// use the disks.
  std::optional<std::uint64_t> end_of(const Operation& operation, std::int64_t result,
                                      std::uint64_t arrival_ns) noexcept {
    const bool moves = operation.kind == Kind::read || operation.kind == Kind::write;
    if (result < 0 || (!moves && operation.kind != Kind::sync)) return std::nullopt;
    return clock_.book(arrival_ns, operation.offset, moves ? result : 0);
  }

 private:
  DiskClock clock_;
  std::unique_ptr<Engine> inner_;  // stopped before the clock goes
};

/// The emulated storage has no page cache of the kernel.
constexpr std::int64_t cannot_tell = -ENOSYS;

class LateTask final : public Task {
 public:
  LateTask(Throttled& engine, std::shared_ptr<Task> task)
      : engine_(engine), task_(std::move(task)), arrival_ns_(trace::now_ns()) {}

  const Operation* next() noexcept override {
    if (end_ns_) {
      if (const std::uint64_t now = trace::now_ns(); now < *end_ns_) {
        pause_ = {.kind = Kind::pause, .size_bytes = static_cast<std::int64_t>(*end_ns_ - now)};
        return &pause_;
      }
      pass_on();
    }
    while ((operation_ = task_->next()) && operation_->kind == Kind::resident) task_->result(cannot_tell);
    return operation_;
  }

  void result(std::int64_t value) noexcept override {
    if (end_ns_) return pass_on();  // the pause is over
    end_ns_ = engine_.end_of(*operation_, value, arrival_ns_);
    if (end_ns_)
      held_ = value;
    else
      task_->result(value);
  }

 private:
  void pass_on() noexcept {
    arrival_ns_ = *std::exchange(end_ns_, std::nullopt);  // of the next operation
    task_->result(held_);
  }

  Throttled& engine_;
  std::shared_ptr<Task> task_;
  std::uint64_t arrival_ns_;
  const Operation* operation_ = nullptr;
  Operation pause_;
  std::optional<std::uint64_t> end_ns_;  ///< of the operation whose result is held back
  std::int64_t held_ = 0;
};

void Throttled::submit(std::shared_ptr<Task> task) {
  inner_->submit(std::make_shared<LateTask>(*this, std::move(task)));
}

std::int64_t Throttled::run(const Operation& operation) noexcept {
  if (operation.kind == Kind::resident) return cannot_tell;
  const std::uint64_t arrival_ns = trace::now_ns();
  const std::int64_t value = inner_->run(operation);
  const auto end_ns = end_of(operation, value, arrival_ns);
  const std::uint64_t now = trace::now_ns();
  if (end_ns && now < *end_ns)
    inner_->run({.kind = Kind::pause, .size_bytes = static_cast<std::int64_t>(*end_ns - now)});
  return value;
}

}  // namespace

std::unique_ptr<Engine> make_throttled_engine(std::unique_ptr<Engine> inner, const Throttle& throttle) {
  return std::make_unique<Throttled>(std::move(inner), throttle);
}

}  // namespace outcore::device

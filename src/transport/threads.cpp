// Ranks as threads of one process: the same calls as between processes, so that sanitizers can check them.
#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "outcore/error.hpp"
#include "transport/host.hpp"
#include "transport/memory_messages.hpp"
#include "transport/memory_segment.hpp"

namespace outcore::transport {
namespace {

/// All threads of one run_threads.
struct Job {
  std::mutex mutex;
  std::condition_variable changed;
  bool cancelled = false;
  std::exception_ptr first;

  void fail(std::exception_ptr error) {
    const std::lock_guard guard(mutex);
    if (!first) first = std::move(error);
    cancelled = true;
    changed.notify_all();
  }
};

/// The place where the threads of one transport meet.
class Group {
 public:
  Group(std::shared_ptr<Job> job, int size) : job_(std::move(job)), shown_(static_cast<std::size_t>(size)) {}
  [[nodiscard]] int size() const noexcept { return static_cast<int>(shown_.size()); }
  [[nodiscard]] const std::shared_ptr<Job>& job() const noexcept { return job_; }

  /// Shows `mine` to all threads and calls `look` with the data of all; no thread returns before all have
  /// looked.
  template <class Look>
  void meet(int rank, const void* mine, Look look) {
    shown_[static_cast<std::size_t>(rank)] = mine;
    arrive(true);
    look(shown_);
    arrive(false);  // all threads are on their way here: nothing to cancel
  }

 private:
  void arrive(bool cancellable) {
    std::unique_lock lock(job_->mutex);
    const std::uint64_t mine = meeting_;
    const auto cancelled = [&] { return cancellable && job_->cancelled; };
    if (!cancelled() && ++arrived_ == size()) {
      arrived_ = 0;
      ++meeting_;
      job_->changed.notify_all();
      return;
    }
    job_->changed.wait(lock, [&] { return meeting_ != mine || cancelled(); });
    if (meeting_ == mine)
      throw Error(ECANCELED, {.attempted = "wait for the other threads", .detail = "one of them has failed"});
  }

  std::shared_ptr<Job> job_;
  std::vector<const void*> shown_;
  int arrived_ = 0;
  std::uint64_t meeting_ = 0;
};

template <class Number>
void reduce(std::span<Number> into, const Number* other, Reduction reduction) {
  for (std::size_t i = 0; i < into.size(); ++i) switch (reduction) {
      case Reduction::sum:
        into[i] += other[i];
        break;
      case Reduction::min:
        into[i] = std::min(into[i], other[i]);
        break;
      case Reduction::max:
        into[i] = std::max(into[i], other[i]);
        break;
    }
}

class Threads final : public Transport {
 public:
  Threads(std::shared_ptr<Group> group, int rank) : group_(std::move(group)) {
    rank_ = rank;
    size_ = group_->size();
  }

  std::string description() const override { return "threads"; }
  std::string host() const override { return host_name(); }

  void barrier() override {
    group_->meet(rank_, nullptr, [](const auto&) {});
  }

  void broadcast(std::span<std::byte> data, int root) override {
    group_->meet(rank_, data.data(), [&](const auto& shown) {
      if (rank_ != root && !data.empty())
        std::memcpy(data.data(), shown[static_cast<std::size_t>(root)], data.size());
    });
  }

  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    group_->meet(rank_, mine.data(), [&](const auto& shown) {
      for (std::size_t i = 0; i < shown.size() && !mine.empty(); ++i)
        std::memcpy(all.data() + i * mine.size(), shown[i], mine.size());
    });
  }

  void all_reduce(std::span<double> values, Reduction reduction) override { reduce_all(values, reduction); }
  void all_reduce(std::span<std::int64_t> values, Reduction reduction) override {
    reduce_all(values, reduction);
  }

  std::unique_ptr<Transport> split(int color, int key) override {
    struct Wish {
      int color, key, rank;
      std::shared_ptr<Group> group;
    };
    Wish mine{color, key, rank_, nullptr};
    std::vector<Wish> members;
    group_->meet(rank_, &mine, [&](const auto& shown) {
      for (const void* each : shown)
        if (const auto& wish = *static_cast<const Wish*>(each); wish.color == color)
          members.push_back({wish.color, wish.key, wish.rank, nullptr});
    });
    std::stable_sort(members.begin(), members.end(),
                     [](const Wish& a, const Wish& b) { return a.key < b.key; });
    const int leader = members.front().rank;
    if (leader == rank_ && color >= 0)
      mine.group = std::make_shared<Group>(group_->job(), static_cast<int>(members.size()));
    std::shared_ptr<Group> group;
    group_->meet(rank_, &mine, [&](const auto& shown) {
      group = static_cast<const Wish*>(shown[static_cast<std::size_t>(leader)])->group;
    });
    if (color < 0) return nullptr;
    const auto me =
        std::find_if(members.begin(), members.end(), [&](const Wish& w) { return w.rank == rank_; });
    return std::make_unique<Threads>(std::move(group), static_cast<int>(me - members.begin()));
  }

  std::unique_ptr<Messages> messages() override {
    const auto mine = rank_ == 0 ? std::make_shared<PostOffice>(size_) : nullptr;
    std::shared_ptr<PostOffice> common;
    group_->meet(rank_, &mine, [&](const auto& shown) {
      common = *static_cast<const std::shared_ptr<PostOffice>*>(shown[0]);
    });
    return memory_messages(std::move(common), rank_);
  }

  std::unique_ptr<Segment> allocate(std::size_t size_bytes, bool shared) override {
    struct Offer {
      std::shared_ptr<const SharedParts> parts;
      std::exception_ptr error;
    };
    Offer mine, common;
    if (rank_ == 0) try {
        mine.parts = std::make_shared<SharedParts>(size_, size_bytes);
      } catch (const Error&) {
        mine.error = std::current_exception();
      }
    group_->meet(rank_, &mine, [&](const auto& shown) { common = *static_cast<const Offer*>(shown[0]); });
    if (common.error) std::rethrow_exception(common.error);
    return memory_segment(std::move(common.parts), rank_, shared ? PartReach::direct : PartReach::hidden);
  }

 private:
  template <class Number>
  void reduce_all(std::span<Number> values, Reduction reduction) {
    std::vector<Number> result(values.size());
    group_->meet(rank_, values.data(), [&](const auto& shown) {
      std::copy_n(static_cast<const Number*>(shown[0]), values.size(), result.begin());
      for (std::size_t i = 1; i < shown.size(); ++i)
        reduce(std::span(result), static_cast<const Number*>(shown[i]), reduction);
    });
    std::copy(result.begin(), result.end(), values.begin());
  }

  std::shared_ptr<Group> group_;
};

}  // namespace

void run_threads(int count, const std::function<void(std::unique_ptr<Transport>)>& body) {
  if (count < 1) throw Error(EINVAL, {.attempted = "run " + std::to_string(count) + " threads"});
  const auto job = std::make_shared<Job>();
  const auto group = std::make_shared<Group>(job, count);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < count; ++rank)
    threads.emplace_back([&, rank] {
      try {
        body(std::make_unique<Threads>(group, rank));
      } catch (...) {
        job->fail(std::current_exception());
      }
    });
  for (std::thread& thread : threads) thread.join();
  if (job->first) std::rethrow_exception(job->first);
}

}  // namespace outcore::transport

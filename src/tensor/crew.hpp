// Threads that multiply. The thread that gives them steps asks for the next panels meanwhile, on one of their
// cores. So parts of a step are not assigned to threads: each thread takes the next part, and none waits for
// a thread that has less of a core.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "base/sibling.hpp"

namespace outcore::tensor {

/// A crew of `threads` threads; 0: the thread that gives a step carries it out. One thread gives steps, and
/// waits for them in the same order. A part begins when the part before it of the same number is done, as
/// both may change the same part of a result. After an error no further part begins.
class Crew {
 public:
  using Work = std::function<void()>;

  explicit Crew(int threads);  ///< Error(EAGAIN) if they cannot be started
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  /// Gives a step of any number of parts, numbered from `first` on.
  void give(std::vector<Work> parts, std::size_t first = 0);
  /// Waits for the earliest step under way. Throws the first error of any thread.
  void wait();
  /// Whether the earliest step under way is done, so that `wait` returns at once; false if none is.
  [[nodiscard]] bool has_done();
  /// Number of steps that were not waited for.
  [[nodiscard]] std::int64_t under_way() const noexcept { return given_ - waited_; }

 private:
  static constexpr std::int64_t none = -1;

  struct Part {
    Work work;
    std::int64_t step, before;  ///< the last step before with a part of this number
    std::size_t number;
  };
  void work();
  void run(const Work& work) noexcept;
  void end();

  std::mutex mutex_;
  // Small products take less time than to wake a thread: only who waits is woken.
  std::condition_variable is_given_, is_ended_, is_done_;  ///< a part; a part that others follow; a step
  std::size_t idle_ = 0, held_up_ = 0;                     ///< threads that wait for each of the first two
  bool waits_ = false;                                     ///< who gives steps, for the third
  std::deque<Part> queue_;
  std::vector<std::int64_t> last_;   ///< for each part the last step that had it
  std::vector<std::int64_t> ended_;  ///< for each part the last step in which it was done
  std::deque<std::int64_t> left_;    ///< parts not done, for each step that was not waited for
  std::exception_ptr error_;
  std::int64_t given_ = 0, waited_ = 0;
  bool closed_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace outcore::tensor

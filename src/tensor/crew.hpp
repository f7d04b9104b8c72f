// Threads that multiply: who gives them steps looks for the next panels meanwhile, on one of their cores. So
// parts of a step belong to no thread: each takes the next one, and none waits for another that has less of a
// core.
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

/// So many threads; 0: who gives a step carries it out. One thread gives them steps, and waits for them in
/// the order in which it gave them. Part i of a step begins when part i of the step before is done: both may
/// be of the same part of a result. After an error nothing more is done.
class Crew {
 public:
  using Work = std::function<void()>;

  explicit Crew(int threads);  ///< Error(EAGAIN) if they cannot be started
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  void give(std::vector<Work> parts);  ///< a step, of any number of parts
  /// For the step that was given first. Throws the first error of any thread.
  void wait();
  /// Steps that were not waited for.
  [[nodiscard]] std::int64_t under_way() const noexcept { return given_ - waited_; }

 private:
  static constexpr std::int64_t none = -1;

  struct Part {
    Work work;
    std::int64_t step, before;  ///< the step before that has a part of this number
    std::size_t number;
  };
  void work();
  void run(const Work& work) noexcept;
  void end();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Part> queue_;
  std::vector<std::int64_t> last_;   ///< of each part the step that had it last
  std::vector<std::int64_t> ended_;  ///< of each part the step in which it was done last
  std::deque<std::int64_t> left_;    ///< of steps that were not waited for: parts that are not done
  std::exception_ptr error_;
  std::int64_t given_ = 0, waited_ = 0;
  bool closed_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace outcore::tensor

// Threads that multiply.
#include <atomic>
#include <chrono>
#include <semaphore>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "support/check.hpp"
#include "tensor/crew.hpp"

using outcore::tensor::Crew;

TEST("a slow part holds no other of its step") {
  std::counting_semaphore<> left(0);
  std::vector<Crew::Work> parts;
  parts.emplace_back([&] {
    for (int i = 0; i < 5; ++i) left.acquire();
  });
  for (int i = 0; i < 5; ++i) parts.emplace_back([&] { left.release(); });
  Crew crew(2);
  crew.give(std::move(parts));
  crew.wait();
  check::equal(crew.under_way(), 0);
}

TEST("a part begins when that of the step before is done") {
  for (const int threads : {0, 1, 3}) {
    std::vector<std::vector<int>> seen(3);
    Crew crew(threads);
    for (int step = 0; step < 50; ++step) {
      std::vector<Crew::Work> parts;
      for (int part = 0; part < 3; ++part)
        parts.emplace_back([&seen, step, part] { seen[static_cast<std::size_t>(part)].push_back(step); });
      crew.give(std::move(parts));
    }
    check::equal(crew.under_way(), 50);
    for (int step = 0; step < 50; ++step) crew.wait();
    for (const auto& steps : seen)
      for (int step = 0; step < 50; ++step) check::equal(steps[static_cast<std::size_t>(step)], step);
  }
}

TEST("parts of other numbers do not wait for a slow one") {
  std::counting_semaphore<> left(0);
  Crew crew(2);
  std::vector<Crew::Work> slow, other;
  slow.emplace_back([&] { left.acquire(); });
  other.emplace_back([&] { left.release(); });
  crew.give(std::move(slow), 0);
  crew.give(std::move(other), 1);
  crew.wait();
  crew.wait();
  check::equal(crew.under_way(), 0);
}

TEST("whether the earliest step is done can be asked") {
  for (const int threads : {0, 1}) {
    std::binary_semaphore begins(threads == 0 ? 1 : 0);
    Crew crew(threads);
    check::is_true(!crew.has_done());
    std::vector<Crew::Work> parts;
    parts.emplace_back([&] { begins.acquire(); });
    crew.give(std::move(parts));
    check::equal(crew.has_done(), threads == 0);
    if (threads == 1) begins.release();
    while (!crew.has_done()) std::this_thread::yield();
    crew.wait();
    check::is_true(!crew.has_done());
  }
}

TEST("parts that have not begun when a crew ends are left out") {
  std::atomic<int> done = 0;
  {
    Crew crew(1);
    for (int step = 0; step < 100; ++step) {
      std::vector<Crew::Work> parts;
      parts.emplace_back([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        ++done;
      });
      crew.give(std::move(parts));
    }
  }
  check::is_true(done.load() < 100);
}

TEST("the first error is thrown, and nothing is done after it") {
  for (const int threads : {0, 1}) {
    std::atomic<int> done = 0;
    Crew crew(threads);
    std::vector<Crew::Work> bad, good;
    bad.emplace_back([] { throw std::runtime_error("no"); });
    good.emplace_back([&] { ++done; });
    crew.give(std::move(bad));
    crew.give(std::move(good));
    check::throws<std::runtime_error>([&] { crew.wait(); });
    check::throws<std::runtime_error>([&] { crew.wait(); });
    check::equal(done.load(), 0);
  }
}

TEST("a step without parts is done at once") {
  Crew crew(1);
  crew.give({});
  crew.wait();
  check::equal(crew.under_way(), 0);
}

TEST_MAIN

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "device/buffer.hpp"
#include "outcore/error.hpp"
#include "support/check.hpp"

using outcore::Error;
using namespace outcore::device;

TEST("buffers are aligned and as large as asked for") {
  for (std::size_t size : {1, 511, 4096, 4097, 1 << 20, (1 << 20) + 1, 4 << 20}) {
    Buffer buffer(size);
    check::equal(reinterpret_cast<std::uintptr_t>(buffer.data()) % 4096, 0U);
    check::equal(buffer.size(), size);
    std::memset(buffer.data(), 1, (size + 4095) / 4096 * 4096);  // the whole capacity may be used
  }
}

TEST("an empty buffer has no memory") {
  Buffer buffer(0);
  check::is_true(buffer.data() == nullptr && buffer.span().empty(), "no memory");
}

TEST("a freed buffer is found again") {
  trim_pool();
  std::byte* first = Buffer(100000).data();
  check::equal(pooled_bytes(), 131072);
  Buffer again(131072);
  check::is_true(again.data() == first, "the same memory");
  check::equal(pooled_bytes(), 0);
}

TEST("the pool is bounded and can be emptied") {
  {
    std::vector<Buffer> many;
    for (int i = 0; i < 40; ++i) many.emplace_back(8 << 20);
  }
  check::is_true(pooled_bytes() > 0 && pooled_bytes() <= 128 << 20, "bounded");
  trim_pool();
  check::equal(pooled_bytes(), 0);
}

TEST("the pool keeps a small share of the budget of a world") {
  const auto fill = [] {
    std::vector<Buffer> many;
    for (int i = 0; i < 40; ++i) many.emplace_back(2 << 20);
  };
  fill();
  limit_pool(256 << 20);
  check::equal(pooled_bytes(), 0);  // what was too much
  fill();
  check::equal(pooled_bytes(), 4 << 20);
  limit_pool(std::int64_t(1) << 40);
  fill();
  check::equal(pooled_bytes(), 80 << 20);
  trim_pool();
}

TEST("moving a buffer moves its memory") {
  Buffer a(5000);
  std::byte* data = a.data();
  Buffer b = std::move(a);
  check::is_true(b.data() == data && b.size() == 5000, "moved");
  b = Buffer(100);
  check::equal(b.size(), 100U);
}

TEST("memory that cannot be had is ENOMEM") {
  const auto error = check::throws<Error>([] { Buffer(std::size_t(1) << 60); });
  check::equal(error.errno_value(), ENOMEM);
}

TEST("threads share the pool") {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([t] {
      for (int i = 0; i < 2000; ++i) {
        Buffer buffer(std::size_t(4096) << (i % 6));
        std::memset(buffer.data(), t, buffer.size());
        for (std::byte byte : buffer.span().first(64))
          if (byte != std::byte(t)) std::abort();
      }
    });
  for (std::thread& thread : threads) thread.join();
}

TEST_MAIN

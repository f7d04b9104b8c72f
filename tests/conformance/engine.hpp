// What every engine must do, for every use of the page cache. A test program includes this, and calls
// conformance::add(name, maker) for each of its engines before main.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "device/buffer.hpp"
#include "device/support.hpp"
#include "outcore/error.hpp"
#include "outcore/extend/engine.hpp"

namespace conformance {

using namespace outcore;
using namespace outcore::device;
using support::Bytes;
using support::pattern;
using support::same;
using support::Scratch;

using Maker = std::function<std::unique_ptr<Engine>()>;

/// One engine, one use of the page cache, one empty directory.
struct Setting {
  std::unique_ptr<Engine> engine;
  PageCache page_cache;
  Scratch scratch;

  [[nodiscard]] OpenOptions options() const { return {.page_cache = page_cache, .engine = engine.get()}; }
  [[nodiscard]] File open() const { return File(scratch.file(), options()); }
};

inline void ragged_and_aligned_ranges(Setting& s) {
  File file = s.open();
  const Bytes data = pattern(1 << 20, 1);
  for (std::int64_t offset : {0, 1, 511, 512, 4095, 4096, 4097, 65536})
    for (std::size_t size : {1, 511, 512, 4095, 4096, 4097, 65535, 65536, 200000, 1 << 20}) {
      const std::span part(data.data(), size);
      check::equal(file.write(part, offset), std::int64_t(size));
      Bytes back(size);
      check::equal(file.read(back, offset), std::int64_t(size));
      same(back, part);
    }
}

/// Operations begun in a burst proceed when the burst ends, even if nobody waits for them.
inline void bursts(Setting& s) {
  File file = s.open();
  const Bytes data = pattern(8 << 16, 3);
  std::vector<Request> requests;
  {
    const Burst burst;
    {
      const Burst within;
      for (std::int64_t k = 0; k < 8; ++k)
        requests.push_back(
            file.write_async(std::span(data).subspan(static_cast<std::size_t>(k << 16), 1 << 16), k << 16));
    }
  }
  while (!std::ranges::all_of(requests, [](const Request& each) { return each.done(); }))
    std::this_thread::yield();
  wait_all(requests);
  Bytes back(data.size());
  {
    const Burst burst;
    Request first = file.read_async(std::span(back).first(1 << 18), 0);
    Request second = file.read_async(std::span(back).subspan(1 << 18), 1 << 18);
    check::equal(second.wait(), std::int64_t{1} << 18);  // in the burst
    check::equal(first.wait(), std::int64_t{1} << 18);
  }
  same(back, data);
  const Burst burst;
  (void)file.write_async(data, 0);
  file.close();
}

inline void aligned_memory(Setting& s) {
  File file = s.open();
  Buffer out(3 << 20), in(3 << 20);
  const Bytes data = pattern(out.size(), 2);
  std::copy(data.begin(), data.end(), out.data());
  for (std::int64_t offset : {0, 4096, 5000}) {
    check::equal(file.write_async(out.span(), offset).wait(), std::int64_t(out.size()));
    check::equal(file.read_async(in.span(), offset).wait(), std::int64_t(in.size()));
    same(in.span(), out.span());
  }
}

inline void end_of_file(Setting& s) {
  File file = s.open();
  const Bytes data = pattern(100001, 3);
  file.write(data, 0);
  check::equal(file.length(), 100001);
  Bytes back(300000);
  check::equal(file.read(back, 1), 100000);
  same(std::span(back).first(100000), std::span(data).subspan(1));
  check::equal(file.read_async(back, 90000).wait(), 10001);
  check::equal(file.read(back, 100001), 0);
  check::equal(file.read_async(back, 1 << 30).wait(), 0);
  check::is_true(file.eof(100001) && !file.eof(100000), "eof at the length, not before");
}

inline void empty_requests(Setting& s) {
  File file = s.open();
  check::equal(file.write(std::span<const std::byte>{}, 10), 0);
  check::equal(file.read_async(std::span<std::byte>{}, 10).wait(), 0);
  check::equal(file.write_async(std::span<const iovec>{}, 0).wait(), 0);
  check::equal(file.length(), 0);
}

inline void holes_read_as_zeros(Setting& s) {
  File file = s.open();
  const Bytes data = pattern(100, 4);
  file.write(data, 1 << 20);
  Bytes back(1 << 20, std::byte(0xff));
  check::equal(file.read(back, 0), 1 << 20);
  same(back, Bytes(1 << 20));
}

inline void truncate_and_preallocate(Setting& s) {
  File file = s.open();
  file.write(pattern(5000, 5), 0);
  file.truncate(1000);
  check::equal(file.length(), 1000);
  file.preallocate(1 << 20);
  check::equal(file.length(), 1 << 20);
  Bytes back(5000);
  check::equal(file.read(back, 0), 5000);
  same(std::span(back).first(1000), pattern(1000, 5));
  same(std::span(back).subspan(1000), Bytes(4000));
  file.preallocate(10);
  check::equal(file.length(), 1 << 20);
}

inline void scatter_and_gather(Setting& s) {
  File file = s.open();
  std::vector<Bytes> out, in;
  std::mt19937_64 random(6);
  Bytes whole;
  for (int i = 0; i < 3000; ++i) {  // more than one system call may list
    out.push_back(pattern(i % 7 == 0 ? 0 : random() % 700, random()));
    in.emplace_back(out.back().size());
    whole.insert(whole.end(), out.back().begin(), out.back().end());
  }
  for (std::int64_t offset : {0, 777}) {
    check::equal(file.write(support::list_of(out), offset), std::int64_t(whole.size()));
    Bytes back(whole.size());
    file.read(back, offset);
    same(back, whole);
    check::equal(file.read_async(support::list_of(in), offset).wait(), std::int64_t(whole.size()));
    for (std::size_t i = 0; i < out.size(); ++i) same(in[i], out[i]);
    check::equal(file.write_async(support::list_of(out), offset + 1).wait(), std::int64_t(whole.size()));
    check::equal(file.read(support::list_of(in), offset + 1), std::int64_t(whole.size()));
    for (std::size_t i = 0; i < out.size(); ++i) same(in[i], out[i]);
  }
}

/// Random operations, blocking and nonblocking, against a model in memory.
inline void random_operations(Setting& s) {
  File file = s.open();
  Bytes model;
  std::mt19937_64 random(7);
  constexpr std::size_t most = 3 << 20;
  for (int step = 0; step < 400; ++step) {
    const auto offset = std::size_t(random() % most) & (random() % 3 ? ~std::size_t(0) : ~std::size_t(4095));
    const auto size = std::size_t(random() % (random() % 4 ? 3000 : 500000)) + 1;
    const auto at = std::int64_t(offset);
    const bool blocking = random() % 2;
    switch (random() % 8) {
      case 0: {
        const auto length = random() % most;
        file.truncate(std::int64_t(length));
        model.resize(length);
        break;
      }
      case 1:
      case 2:
      case 3: {
        const Bytes data = pattern(size, random());
        const auto moved = blocking ? file.write(data, at) : file.write_async(data, at).wait();
        check::equal(moved, std::int64_t(size));
        if (model.size() < offset + size) model.resize(offset + size);
        std::copy(data.begin(), data.end(), model.begin() + at);
        break;
      }
      default: {
        Buffer aligned(size);
        const auto moved =
            blocking ? file.read(aligned.span(), at) : file.read_async(aligned.span(), at).wait();
        const auto expected = offset >= model.size() ? 0 : std::min(size, model.size() - offset);
        check::equal(moved, std::int64_t(expected));
        if (expected) same(aligned.span().first(expected), std::span(model).subspan(offset, expected));
      }
    }
  }
  check::equal(file.length(), std::int64_t(model.size()));
}

inline void thousands_outstanding(Setting& s) {
  File file = s.open();
  constexpr std::size_t count = 4000, size = 1600;
  const Bytes data = pattern(count * size, 8);
  std::vector<Request> requests;
  for (std::size_t i = 0; i < count; ++i)
    requests.push_back(file.write_async(std::span(data).subspan(i * size, size), std::int64_t(i * size)));
  wait_all(requests);
  Bytes back(data.size());
  requests.clear();
  for (std::size_t i = count; i-- > 0;)
    requests.push_back(file.read_async(std::span(back).subspan(i * size, size), std::int64_t(i * size)));
  wait_all(requests);
  same(back, data);
}

/// Neighbours share pages and blocks; each must keep its own bytes.
inline void ragged_neighbours(Setting& s) {
  File file = s.open();
  constexpr std::size_t count = 600, size = 21001;
  Bytes back(count * size);
  for (unsigned pass = 0; pass < 2; ++pass) {
    const Bytes data = pattern(count * size, 20 + pass);
    std::vector<Request> requests;
    for (std::size_t i = 0; i < count; ++i)
      requests.push_back(file.write_async(std::span(data).subspan(i * size, size), std::int64_t(i * size)));
    wait_all(requests);
    file.read(back, 0);
    same(back, data);
  }
}

inline void any_of_several(Setting& s) {
  File file = s.open();
  const Bytes data = pattern(1 << 20, 9);
  file.write(data, 0);
  std::vector<Bytes> parts(16, Bytes(1 << 16));
  std::vector<Request> requests;
  for (std::size_t i = 0; i < parts.size(); ++i)
    requests.push_back(file.read_async(parts[i], std::int64_t(i) << 16));
  std::vector<std::size_t> position(requests.size());
  for (std::size_t i = 0; i < position.size(); ++i) position[i] = i;
  while (!requests.empty()) {
    const std::size_t k = wait_any(requests);
    check::is_true(requests[k].done() && requests[k].test(), "the request wait_any names is complete");
    check::equal(requests[k].wait(), 1 << 16);
    same(parts[position[k]], std::span(data).subspan(position[k] << 16, 1 << 16));
    requests.erase(requests.begin() + std::ptrdiff_t(k));
    position.erase(position.begin() + std::ptrdiff_t(k));
  }
  check::equal(check::throws<Error>([] { wait_any({}); }).errno_value(), EINVAL);
}

inline void abandoned_requests(Setting& s) {
  const Bytes data = pattern(4 << 20, 10);
  Bytes back(data.size());
  {
    File file = s.open();
    for (std::size_t i = 0; i < 64; ++i)
      static_cast<void>(file.write_async(std::span(data).subspan(i << 16, 1 << 16), std::int64_t(i) << 16));
    file.flush();
    check::equal(file.length(), 4 << 20);
    for (std::size_t i = 0; i < 64; ++i)
      static_cast<void>(file.read_async(std::span(back).subspan(i << 16, 1 << 16), std::int64_t(i) << 16));
  }  // closing waits for them
  same(back, data);
}

inline void request_outlives_file(Setting& s) {
  const Bytes data = pattern(100000, 11);
  Request request;
  {
    File file = s.open();
    request = file.write_async(data, 0);
  }
  check::equal(request.wait(), 100000);
}

inline void many_threads_on_one_file(Setting& s) {
  File file = s.open();
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      std::mt19937_64 random(std::uint64_t(t) + 100);
      for (int i = 0; i < 60; ++i) {
        const std::size_t size = random() % 100000 + 1;
        const std::int64_t offset = t * (std::int64_t(1) << 21) + std::int64_t(random() % 1000000);
        const Bytes data = pattern(size, random());
        Bytes back(size);
        if (i % 2) {
          file.write(data, offset);
          file.read_async(back, offset).wait();
        } else {
          file.write_async(data, offset).wait();
          file.read(back, offset);
        }
        wrong += back != data;
      }
    });
  for (std::thread& thread : threads) thread.join();
  check::equal(wrong.load(), 0);
}

inline void many_waiters_of_one_request(Setting& s) {
  File file = s.open();
  const Bytes data = pattern(8 << 20, 12);
  Request request = file.write_async(data, 0);
  std::atomic<int> right{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([copy = request, &right]() mutable { right += copy.wait() == 8 << 20; });
  for (std::thread& thread : threads) thread.join();
  check::equal(right.load(), 4);
}

inline void bad_arguments(Setting& s) {
  File file = s.open();
  Bytes data(10);
  const auto negative = check::throws<Error>([&] { file.read(data, -5); });
  check::equal(negative.errno_value(), EINVAL);
  check::contains(negative.what(), "negative offset -5");
  check::contains(negative.what(), s.scratch.file());
  check::equal(check::throws<Error>([&] { static_cast<void>(file.write_async(data, -1)); }).errno_value(),
               EINVAL);
  check::contains(check::throws<Error>([&] { file.truncate(-3); }).what(), "negative size -3");
  check::contains(check::throws<Error>([&] { file.preallocate(-3); }).what(), "negative size -3");
  const iovec negative_size{data.data(), std::size_t(-7)};
  check::equal(check::throws<Error>([&] { file.write({&negative_size, 1}, 0); }).errno_value(), EINVAL);
  check::equal(check::throws<Error>([&] { file.read(data, INT64_MAX - 3); }).errno_value(), EFBIG);
}

inline void closed_file(Setting& s) {
  File file = s.open();
  file.close();
  file.close();
  Bytes data(10);
  const auto error = check::throws<Error>([&] { file.read(data, 0); });
  check::equal(error.errno_value(), EBADF);
  check::contains(error.what(), "closed");
  check::equal(check::throws<Error>([&] { static_cast<void>(file.read_async(data, 0)); }).errno_value(),
               EBADF);
  check::equal(check::throws<Error>([&] { static_cast<void>(file.length()); }).errno_value(), EBADF);
  check::equal(check::throws<Error>([&] { file.flush(); }).errno_value(), EBADF);
}

inline void read_only_file(Setting& s) {
  const Bytes data = pattern(200000, 13);
  s.open().write(data, 0);
  OpenOptions options = s.options();
  options.read_only = true;
  File file(s.scratch.file(), options);
  Bytes back(data.size());
  check::equal(file.read_async(back, 0).wait(), std::int64_t(data.size()));
  same(back, data);
  const auto error = check::throws<Error>([&] { file.write(data, 0); });
  check::equal(error.errno_value(), EBADF);
  check::contains(error.what(), "read-only");
}

inline void opening(Setting& s) {
  OpenOptions options = s.options();
  options.create = false;
  const auto missing = check::throws<Error>([&] { File(s.scratch.file("none"), options); });
  check::equal(missing.errno_value(), ENOENT);
  check::contains(missing.what(), "none");
  check::equal(check::throws<Error>([&] { File(s.scratch.path(), options); }).errno_value(), EISDIR);
  s.open().write(Bytes(100), 0);
  options.truncate = true;
  check::equal(File(s.scratch.file(), options).length(), 0);
  remove_file(s.scratch.file());
  check::equal(check::throws<Error>([&] { remove_file(s.scratch.file()); }).errno_value(), ENOENT);
}

/// Data written through the page cache is read from the device, and the other way round: both must agree.
inline void modes_agree(Setting& s) {
  Buffer data(1 << 20), back(1 << 20);
  const Bytes bytes = pattern(data.size(), 14);
  std::copy(bytes.begin(), bytes.end(), data.data());
  File one = s.open();
  for (PageCache other : {PageCache::automatic, PageCache::buffered, PageCache::direct}) {
    File two(s.scratch.file(), {.page_cache = other, .engine = s.engine.get()});
    one.write(data.span(), 0);
    two.read(back.span(), 0);
    same(back.span(), data.span());
    data.data()[12345] ^= std::byte(1);
    two.write(data.span(), 0);
    one.read(back.span(), 0);
    same(back.span(), data.span());
  }
}

inline void evicted_data(Setting& s) {
  File file = s.open();
  Buffer data(2 << 20), back(2 << 20);
  const Bytes bytes = pattern(data.size(), 15);
  std::copy(bytes.begin(), bytes.end(), data.data());
  file.write(data.span(), 0);
  file.flush();
  const int fd = ::open(s.scratch.file().c_str(), O_RDONLY);
  posix_fadvise(fd, 4096 * 11, 1 << 20, POSIX_FADV_DONTNEED);  // half of it leaves the page cache
  for (int pass = 0; pass < 3; ++pass) {
    std::fill_n(back.data(), back.size(), std::byte(0));
    check::equal(file.read(back.span(), 0), std::int64_t(back.size()));
    same(back.span(), data.span());
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  }
  ::close(fd);
}

/// A limit on the size of files, in place of a device that refuses writes.
class SizeLimit {
 public:
  explicit SizeLimit(rlim_t bytes) {
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~SizeLimit() { setrlimit(RLIMIT_FSIZE, &before_); }
  SizeLimit(const SizeLimit&) = delete;

 private:
  rlimit before_{};
};

inline void failed_write_is_delivered(Setting& s) {
  const SizeLimit limit(1 << 20);
  constexpr std::int64_t beyond = (1 << 20) + 4096;
  const Bytes data = pattern(1 << 18, 16);
  File file = s.open();
  const auto failing = [&] { return file.write_async(data, beyond); };
  const auto error = check::throws<Error>([&] { failing().wait(); });
  check::equal(error.errno_value(), EFBIG);
  check::equal(error.context().offset, beyond);
  check::equal(error.context().size_bytes, 1 << 18);
  file.flush();  // delivered already
  static_cast<void>(failing());
  check::equal(check::throws<Error>([&] { file.flush(); }).errno_value(), EFBIG);
  file.flush();
  static_cast<void>(failing());
  check::equal(check::throws<Error>([&] { file.settle(); }).errno_value(), EFBIG);
  Request held = failing();
  check::equal(check::throws<Error>([&] { file.close(); }).errno_value(), EFBIG);
  check::is_true(held.done(), "complete after close");
  check::equal(check::throws<Error>([&] { held.wait(); }).errno_value(), EFBIG);
}

/// A write that the device refuses gives back the space that it has taken so far; earlier data stays.
inline void refused_write_gives_back(Setting& s) {
  const SizeLimit limit(1 << 20);
  const Bytes before = pattern(1 << 18, 20), data = pattern(1 << 20, 21);
  File file = s.open();
  file.write(before, 0);
  file.flush();
  const std::int64_t space = file.space_bytes();
  for (int round = 0; round < 2; ++round) {
    for (const std::int64_t offset : {1 << 18, 1 << 19}) {
      check::equal(check::throws<Error>([&] { file.write(data, offset); }).errno_value(), EFBIG);
      check::equal(check::throws<Error>([&] { file.write_async(data, offset).wait(); }).errno_value(), EFBIG);
    }
    check::is_true(file.space_bytes() <= space + 4096, "space is given back");
  }
  Bytes back(before.size());
  check::equal(file.read(back, 0), std::int64_t(back.size()));
  same(back, before);
  file.write(before, 1 << 18);  // there is room for what fits
  file.flush();
  check::throws<Error>([&] { file.write(data, 1 << 17); });  // over both
  check::equal(file.read(back, (1 << 18) + (1 << 17)), std::int64_t(back.size()));
  check::is_true(file.space_bytes() >= 2 * std::int64_t(before.size()), "what others have written is kept");
}

inline void stop_completes_everything(Setting& s) {
  File file = s.open();
  const Bytes data = pattern(1 << 20, 17);
  std::vector<Request> requests;
  for (int i = 0; i < 32; ++i) requests.push_back(file.write_async(data, std::int64_t(i) << 20));
  s.engine->stop();
  for (Request& request : requests) check::is_true(request.done(), "complete after stop");
  Bytes back(data.size());
  check::equal(file.read_async(back, 31 << 20).wait(), 1 << 20);  // now in the calling thread
  same(back, data);
}

inline void dense_writes_in_any_order(Setting& s) {
  OpenOptions options = s.options();
  options.sole_writer = true;  // space is reserved ahead
  File file(s.scratch.file(), options);
  constexpr int count = 101;
  constexpr std::int64_t piece = 64 << 10;
  const Bytes data = pattern(count * piece, 18);
  const auto part = [&](int k) { return std::span(data).subspan(std::size_t(k * piece), piece); };
  std::vector<Request> requests;
  for (int i = 0; i < count - 1; ++i) {
    const int k = i * 37 % count;
    if (i % 3 == 0)
      file.write(part(k), k * piece);
    else
      requests.push_back(file.write_async(part(k), k * piece));
  }
  wait_all(requests);
  check::equal(file.length(), count * piece);
  constexpr int missing = (count - 1) * 37 % count;
  for (int k = 0; k < count; ++k) {
    Bytes back(piece);
    check::equal(file.read(back, k * piece), piece);
    if (k == missing)
      same(back, Bytes(piece));
    else
      same(back, part(k));
  }
}

inline void add(const std::string& engine, const Maker& make) {
  using Body = std::function<void(Setting&)>;
  const std::vector<std::pair<const char*, Body>> bodies{
      {"ragged and aligned ranges", ragged_and_aligned_ranges},
      {"aligned memory", aligned_memory},
      {"bursts", bursts},
      {"end of file", end_of_file},
      {"empty requests", empty_requests},
      {"holes read as zeros", holes_read_as_zeros},
      {"truncate and preallocate", truncate_and_preallocate},
      {"dense writes in any order", dense_writes_in_any_order},
      {"scatter and gather", scatter_and_gather},
      {"random operations", random_operations},
      {"thousands outstanding", thousands_outstanding},
      {"ragged neighbours", ragged_neighbours},
      {"any of several", any_of_several},
      {"abandoned requests", abandoned_requests},
      {"request outlives file", request_outlives_file},
      {"many threads on one file", many_threads_on_one_file},
      {"many waiters of one request", many_waiters_of_one_request},
      {"bad arguments", bad_arguments},
      {"closed file", closed_file},
      {"read-only file", read_only_file},
      {"opening", opening},
      {"modes agree", modes_agree},
      {"evicted data", evicted_data},
      {"failed write is delivered", failed_write_is_delivered},
      {"refused write gives back", refused_write_gives_back},
      {"stop completes everything", stop_completes_everything},
  };
  const std::vector<std::pair<const char*, PageCache>> uses{
      {"automatic", PageCache::automatic}, {"buffered", PageCache::buffered}, {"direct", PageCache::direct}};
  static std::deque<std::string> names;
  for (const auto& [use_name, page_cache] : uses)
    for (const auto& [body_name, body] : bodies) {
      names.push_back(engine + ", " + use_name + ": " + body_name);
      check::tests().push_back({names.back().c_str(), [make, page_cache, body] {
                                  Setting setting{make(), page_cache, {}};
                                  body(setting);
                                }});
    }
}

}  // namespace conformance

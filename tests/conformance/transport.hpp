// What every back-end of the transport must do. A test program includes this, and calls
// conformance::add(name, run, count) for each of its back-ends before main; `run` runs a body in `count`
// processes (or threads).
#pragma once

#include <algorithm>
#include <cerrno>
#include <complex>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "outcore/error.hpp"
#include "outcore/extend/transport.hpp"
#include "support/check.hpp"

namespace conformance {

using namespace outcore;
using namespace outcore::transport;

using Body = std::function<void(Transport&)>;
using Run = std::function<void(int count, const Body&)>;

template <class Element>
std::span<std::byte> bytes(std::vector<Element>& values) {
  return std::as_writable_bytes(std::span(values));
}

template <class Element>
ElementType type_of() {
  for (int number = 1; number <= 9; ++number) {
    const auto type = static_cast<ElementType>(number);
    if (visit(type, [](auto element) { return std::is_same_v<decltype(element), Element>; })) return type;
  }
  std::terminate();
}

/// `count` elements from `offset` (bytes) on, contiguous on both sides.
template <class Element>
StridedTransfer line(int process, std::int64_t offset, Element* memory, std::int64_t count) {
  const Extents stride{static_cast<std::int64_t>(sizeof(Element))};
  return {.process = process,
          .offset = offset,
          .stride_bytes = stride,
          .memory = reinterpret_cast<std::byte*>(memory),
          .memory_stride_bytes = stride,
          .count = {count},
          .type = type_of<Element>()};
}

template <class Element>
std::vector<Element> read(Segment& segment, int process, std::int64_t offset, std::int64_t count) {
  std::vector<Element> values(static_cast<std::size_t>(count));
  segment.get(line(process, offset, values.data(), count)).wait();
  return values;
}

// ---- collectives ----

inline void ranks_are_distinct(Transport& transport) {
  std::vector<int> mine{transport.rank()}, all(static_cast<std::size_t>(transport.size()));
  transport.all_gather(std::as_bytes(std::span(mine)), bytes(all));
  for (int i = 0; i < transport.size(); ++i) check::equal(all[static_cast<std::size_t>(i)], i);
}

inline void has_a_description_and_a_host(Transport& transport) {
  check::is_true(!transport.description().empty());
  check::is_true(!transport.host().empty());
}

inline void broadcast_comes_from_its_root(Transport& transport) {
  for (int root = 0; root < transport.size(); ++root) {
    std::vector<int> values(1000, transport.rank() == root ? root + 1 : 0);
    transport.broadcast(bytes(values), root);
    for (const int value : values) check::equal(value, root + 1);
  }
}

inline void empty_collectives_are_allowed(Transport& transport) {
  transport.broadcast({}, 0);
  transport.all_gather({}, {});
  transport.all_reduce(std::span<double>{}, Reduction::sum);
}

inline void all_gather_keeps_the_order(Transport& transport) {
  const std::vector<std::int64_t> mine(777, transport.rank());
  std::vector<std::int64_t> all(mine.size() * static_cast<std::size_t>(transport.size()));
  transport.all_gather(std::as_bytes(std::span(mine)), bytes(all));
  for (std::size_t i = 0; i < all.size(); ++i)
    check::equal(all[i], static_cast<std::int64_t>(i / mine.size()));
}

inline void reductions(Transport& transport) {
  const double n = transport.size(), r = transport.rank();
  std::vector<double> real{r + 1, -r, 0.5};
  transport.all_reduce(real, Reduction::sum);
  check::equal(real[0], n * (n + 1) / 2);
  check::equal(real[1], -n * (n - 1) / 2);
  check::equal(real[2], n / 2);
  std::vector<std::int64_t> whole{transport.rank() + 5, -transport.rank()};
  transport.all_reduce(whole, Reduction::max);
  check::equal(whole[0], transport.size() + 4);
  check::equal(whole[1], 0);
  whole = {transport.rank() + 5, -transport.rank()};
  transport.all_reduce(whole, Reduction::min);
  check::equal(whole[0], 5);
  check::equal(whole[1], 1 - transport.size());
}

inline void a_barrier_waits_for_all(Transport& transport) {
  const auto segment = transport.allocate(64, false);
  for (int round = 1; round <= 20; ++round) {
    segment->fetch_add(0, 0, 1);
    transport.barrier();
    check::equal(segment->fetch_add(0, 0, 0), round * transport.size());
    transport.barrier();
  }
}

inline void split_orders_by_key(Transport& transport) {
  const auto half = transport.split(transport.rank() % 2, -transport.rank());
  const int members = (transport.size() + 1 - transport.rank() % 2) / 2;
  check::equal(half->size(), members);
  check::equal(half->rank(), members - 1 - transport.rank() / 2);
  std::vector<std::int64_t> sum{transport.rank()};
  half->all_reduce(sum, Reduction::sum);
  std::int64_t expected = 0;
  for (int i = transport.rank() % 2; i < transport.size(); i += 2) expected += i;
  check::equal(sum[0], expected);
}

inline void a_negative_color_gives_nothing(Transport& transport) {
  const auto rest = transport.split(transport.rank() == 0 ? -1 : 0, 0);
  check::equal(rest == nullptr, transport.rank() == 0);
  if (rest) check::equal(rest->size(), transport.size() - 1);
}

inline void duplicates_serve_threads_of_their_own(Transport& transport) {
  const auto other = transport.duplicate();
  std::exception_ptr failure;
  std::thread thread([&] {
    try {
      for (int i = 0; i < 50; ++i) reductions(*other);
    } catch (...) {
      failure = std::current_exception();
    }
  });
  for (int i = 0; i < 50; ++i) reductions(transport);
  thread.join();
  if (failure) std::rethrow_exception(failure);
}

// ---- one-sided memory; each test runs for shared memory and for memory that is not shared ----

inline void is_zero_at_first(Transport& transport, bool shared) {
  const auto segment = transport.allocate(100000, shared);
  check::equal(segment->size_bytes(), 100000U);
  for (int process = 0; process < transport.size(); ++process)
    for (const auto value : read<std::uint8_t>(*segment, process, 0, 100000)) check::equal(int{value}, 0);
}

inline void a_segment_may_be_empty(Transport& transport, bool shared) {
  const auto segment = transport.allocate(0, shared);
  check::equal(segment->size_bytes(), 0U);
  std::int64_t none = 0;
  segment->put(line(0, 0, &none, 0)).wait();
  check::throws<Error>([&] { segment->put(line(0, 0, &none, 1)).wait(); });
  segment->flush();
}

inline void puts_are_seen_after_a_flush_and_a_barrier(Transport& transport, bool shared) {
  constexpr std::int64_t count = 5000;
  const auto segment = transport.allocate(count * 8 * static_cast<std::size_t>(transport.size()), shared);
  std::vector<double> mine(count);
  for (int process = 0; process < transport.size(); ++process) {
    std::iota(mine.begin(), mine.end(), 1e6 * transport.rank() + 1e3 * process);
    segment->put(line(process, transport.rank() * count * 8, mine.data(), count)).wait();
  }
  segment->flush();
  transport.barrier();
  for (int process = 0; process < transport.size(); ++process)
    for (int from = 0; from < transport.size(); ++from) {
      const auto values = read<double>(*segment, process, from * count * 8, count);
      for (std::int64_t i = 0; i < count; ++i)
        check::equal(values[static_cast<std::size_t>(i)],
                     1e6 * from + 1e3 * process + static_cast<double>(i));
    }
  segment->flush();
  const auto* own = reinterpret_cast<const double*>(segment->local());
  for (int from = 0; from < transport.size(); ++from)
    check::equal(own[from * count], 1e6 * from + 1e3 * transport.rank());
  transport.barrier();
}

/// A box of a 3-dimensional array is put from and got into memory with transposed and reversed axes.
inline void strided_transfers(Transport& transport, bool shared) {
  const Extents shape{7, 11, 13};
  const auto segment = transport.allocate(static_cast<std::size_t>(shape.product()) * 4, shared);
  const Extents stride = row_major(shape, 4);
  const auto value = [](int rank, std::int64_t i, std::int64_t j, std::int64_t k) {
    return static_cast<std::int32_t>(100000 * (rank + 1) + 10000 * i + 100 * j + k);
  };
  const int next = (transport.rank() + 1) % transport.size();
  // Memory [k][i][j], with j from the end to the beginning.
  std::vector<std::int32_t> memory(4 * 5 * 6);
  const Extents count{5, 6, 4};
  const Extents memory_stride{6 * 4, -4, 5 * 6 * 4};
  auto* last_j = memory.data() + 5;
  for (std::int64_t i = 0; i < 5; ++i)
    for (std::int64_t j = 0; j < 6; ++j)
      for (std::int64_t k = 0; k < 4; ++k) last_j[i * 6 - j + k * 30] = value(transport.rank(), i, j, k);
  const StridedTransfer transfer{.process = next,
                                 .offset = 2 * stride[0] + 3 * stride[1] + 5 * stride[2],
                                 .stride_bytes = stride,
                                 .memory = reinterpret_cast<std::byte*>(last_j),
                                 .memory_stride_bytes = memory_stride,
                                 .count = count,
                                 .type = ElementType::int32};
  segment->put(transfer).wait();
  segment->flush();
  transport.barrier();
  std::fill(memory.begin(), memory.end(), 0);
  segment->get(transfer).wait();
  for (std::int64_t i = 0; i < 5; ++i)
    for (std::int64_t j = 0; j < 6; ++j)
      for (std::int64_t k = 0; k < 4; ++k)
        check::equal(last_j[i * 6 - j + k * 30], value(transport.rank(), i, j, k));
  // The whole part of this process: the elements that its neighbour put, and zeros around them.
  const int before = (transport.rank() + transport.size() - 1) % transport.size();
  const auto all = read<std::int32_t>(*segment, transport.rank(), 0, shape.product());
  for (std::int64_t i = 0; i < shape[0]; ++i)
    for (std::int64_t j = 0; j < shape[1]; ++j)
      for (std::int64_t k = 0; k < shape[2]; ++k) {
        const bool inside = i >= 2 && i < 7 && j >= 3 && j < 9 && k >= 5 && k < 9;
        check::equal(all[static_cast<std::size_t>((i * 11 + j) * 13 + k)],
                     inside ? value(before, i - 2, j - 3, k - 5) : 0);
      }
  transport.barrier();
}

inline void several_gets_are_under_way_at_once(Transport& transport, bool shared) {
  constexpr std::int64_t count = 1000;
  const auto segment = transport.allocate(count * 8, shared);
  std::vector<std::int64_t> mine(count, transport.rank() + 1);
  segment->put(line(transport.rank(), 0, mine.data(), count)).wait();
  segment->flush();
  transport.barrier();
  std::vector<std::vector<std::int64_t>> got;
  for (int i = 0; i < 40; ++i) got.emplace_back(count, 0);
  std::vector<Request> operations;
  for (int i = 0; i < 40; ++i)
    operations.push_back(
        segment->get(line(i % transport.size(), 0, got[static_cast<std::size_t>(i)].data(), count)));
  for (std::size_t i = 0; i < 20; ++i) operations[i].wait();
  for (std::size_t i = 20; i < 40; ++i)
    while (!operations[i].test()) std::this_thread::yield();
  for (int i = 0; i < 40; ++i)
    for (const auto value : got[static_cast<std::size_t>(i)]) check::equal(value, i % transport.size() + 1);
  transport.barrier();
}

inline void an_operation_that_is_dropped_is_waited_for(Transport& transport, bool shared) {
  const auto segment = transport.allocate(8000, shared);
  std::vector<double> ones(1000, 1), got(1000);
  segment->put(line(transport.rank(), 0, ones.data(), 1000)).wait();
  segment->flush();
  transport.barrier();
  {
    const auto dropped = segment->get(line((transport.rank() + 1) % transport.size(), 0, got.data(), 1000));
  }
  for (const double value : got) check::equal(value, 1.0);
  transport.barrier();
}

template <class Element>
void all_accumulate(Transport& transport, bool shared) {
  constexpr std::int64_t rows = 60, columns = 700;  // more than one block of a lock
  const auto segment = transport.allocate(rows * columns * sizeof(Element), shared);
  std::vector<Element> mine(static_cast<std::size_t>(rows * columns / 2));
  for (std::size_t i = 0; i < mine.size(); ++i) mine[i] = static_cast<Element>(i % 100);
  const auto alpha = static_cast<Element>(transport.rank() + 1);
  constexpr std::int64_t size = sizeof(Element);
  for (int process = 0; process < transport.size(); ++process) {
    const StridedTransfer transfer{.process = process,
                                   .offset = columns / 4 * size,
                                   .stride_bytes = {columns * size, size},
                                   .memory = reinterpret_cast<std::byte*>(mine.data()),
                                   .memory_stride_bytes = {columns / 2 * size, size},
                                   .count = {rows, columns / 2},
                                   .type = type_of<Element>()};
    segment->accumulate(transfer, &alpha).wait();
  }
  segment->flush();
  transport.barrier();
  const auto total = static_cast<Element>(transport.size() * (transport.size() + 1) / 2);
  const auto result = read<Element>(*segment, transport.rank(), 0, rows * columns);
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) {
      const bool inside = j >= columns / 4 && j < columns / 4 + columns / 2;
      const auto source = static_cast<std::size_t>(i * (columns / 2) + j - columns / 4);
      check::equal(result[static_cast<std::size_t>(i * columns + j)],
                   inside ? total * mine[source] : Element{});
    }
  transport.barrier();
}

inline void accumulates_of_every_type_add_up(Transport& transport, bool shared) {
  all_accumulate<std::int32_t>(transport, shared);
  all_accumulate<std::int64_t>(transport, shared);
  all_accumulate<float>(transport, shared);
  all_accumulate<double>(transport, shared);
  all_accumulate<std::complex<float>>(transport, shared);
  all_accumulate<std::complex<double>>(transport, shared);
}

inline void a_complex_factor_multiplies(Transport& transport, bool shared) {
  const auto segment = transport.allocate(64, shared);
  std::complex<double> value{2, 3};
  const std::complex<double> alpha{0, 1};
  if (transport.rank() == 0) segment->accumulate(line(transport.size() - 1, 16, &value, 1), &alpha).wait();
  segment->flush();
  transport.barrier();
  check::equal(read<std::complex<double>>(*segment, transport.size() - 1, 16, 1)[0],
               std::complex<double>(-3, 2));
  transport.barrier();
}

/// Small accumulates to one place, from several threads of every process, along reversed strides.
inline void accumulates_are_atomic(Transport& transport, bool shared) {
  constexpr int rounds = 300;
  const auto segment = transport.allocate(800, shared);
  const auto add = [&](std::int64_t stride) {
    std::vector<double> ones(50, 1);
    const double alpha = 1;
    StridedTransfer transfer = line(0, stride > 0 ? 0 : 49 * 16, ones.data(), 50);
    transfer.stride_bytes = {stride};
    for (int i = 0; i < rounds; ++i) segment->accumulate(transfer, &alpha).wait();
  };
  std::thread thread([&] { add(16); });
  add(-16);
  thread.join();
  segment->flush();
  transport.barrier();
  const auto result = read<double>(*segment, 0, 0, 100);
  for (std::size_t i = 0; i < 100; ++i)
    check::equal(result[i], i % 2 == 0 ? 2.0 * rounds * transport.size() : 0.0);
  transport.barrier();
}

inline void small_integers_are_not_accumulated(Transport& transport, bool shared) {
  const auto segment = transport.allocate(64, shared);
  std::int16_t value = 1, alpha = 1;
  const auto error = check::throws<Error>([&] { segment->accumulate(line(0, 0, &value, 1), &alpha).wait(); });
  check::equal(error.errno_value(), EINVAL);
  check::contains(error.what(), "int16");
}

inline void tickets_are_unique(Transport& transport, bool shared) {
  constexpr int draws = 200;
  const auto segment = transport.allocate(64, shared);
  const int home = transport.size() - 1;
  std::vector<std::int64_t> mine;
  for (int i = 0; i < draws; ++i) mine.push_back(segment->fetch_add(home, 8, 1));
  std::vector<std::int64_t> all(static_cast<std::size_t>(draws * transport.size()));
  transport.all_gather(std::as_bytes(std::span(mine)), bytes(all));
  std::sort(all.begin(), all.end());
  for (std::size_t i = 0; i < all.size(); ++i) check::equal(all[i], static_cast<std::int64_t>(i));
  transport.barrier();
  if (transport.rank() == 0) check::equal(segment->fetch_add(home, 8, -5), draws * transport.size());
  transport.barrier();
  check::equal(segment->fetch_add(home, 8, 0), draws * transport.size() - 5);
  transport.barrier();
}

inline void compare_swap_has_one_winner(Transport& transport, bool shared) {
  const auto segment = transport.allocate(64, shared);
  for (int round = 0; round < 50; ++round) {
    const std::int64_t before = segment->compare_swap(0, 16, round, round + 1);
    check::is_true(before == round || before == round + 1);
    std::vector<std::int64_t> winners{before == round ? 1 : 0};
    transport.all_reduce(winners, Reduction::sum);
    check::equal(winners[0], 1);
  }
  check::equal(segment->compare_swap(0, 16, -1, 77), 50);
  check::equal(segment->fetch_add(0, 16, 0), 50);
  transport.barrier();
}

inline void what_is_outside_is_refused(Transport& transport, bool shared) {
  const auto segment = transport.allocate(80, shared);
  std::vector<double> memory(20);
  const double alpha = 1;
  const auto refused = [&](const StridedTransfer& transfer) {
    for (const auto& attempt : {std::function<void()>([&] { segment->get(transfer).wait(); }),
                                std::function<void()>([&] { segment->put(transfer).wait(); }),
                                std::function<void()>([&] { segment->accumulate(transfer, &alpha).wait(); })})
      check::equal(check::throws<Error>(attempt).errno_value(), EINVAL);
  };
  refused(line(0, 8, memory.data(), 10));
  refused(line(0, -8, memory.data(), 2));
  refused(line(transport.size(), 0, memory.data(), 1));
  refused(line(-1, 0, memory.data(), 1));
  StridedTransfer backwards = line(0, 32, memory.data(), 6);
  backwards.stride_bytes = {-8};
  refused(backwards);
  check::throws<Error>([&] { segment->fetch_add(0, 80, 1); });
  check::throws<Error>([&] { segment->fetch_add(0, 4, 1); });
  check::throws<Error>([&] { segment->compare_swap(transport.size(), 0, 1, 1); });
}

inline void clear_zeros_a_range_of_the_own_part(Transport& transport, bool shared) {
  constexpr std::int64_t size = 100000;
  const auto segment = transport.allocate(size, shared);
  std::vector<std::uint8_t> ones(size, 1);
  segment->put(line(transport.rank(), 0, ones.data(), size)).wait();
  segment->flush();
  transport.barrier();
  segment->clear(1000, 90000);
  segment->clear(99000, 10);
  transport.barrier();
  for (int process = 0; process < transport.size(); ++process) {
    const auto values = read<std::uint8_t>(*segment, process, 0, size);
    for (std::int64_t i = 0; i < size; ++i)
      check::equal(int{values[static_cast<std::size_t>(i)]},
                   (i >= 1000 && i < 91000) || (i >= 99000 && i < 99010) ? 0 : 1);
  }
  transport.barrier();
}

inline void populating_keeps_what_is_there(Transport& transport, bool shared) {
  constexpr std::int64_t size = 5 << 20, step = 1000;
  const auto segment = transport.allocate(size, shared);
  for (std::int64_t at = 0; at < size; at += step)
    segment->local()[at] = static_cast<std::byte>(transport.rank() + 1);
  segment->populate(step, size - step);
  segment->flush();
  transport.barrier();
  for (int process = 0; process < transport.size(); ++process) {
    const auto values = read<std::uint8_t>(*segment, process, 0, size);
    for (std::int64_t at = 0; at < size; ++at)
      check::equal(int{values[static_cast<std::size_t>(at)]}, at % step == 0 ? process + 1 : 0);
  }
  transport.barrier();
}

inline void own_part_is_direct(Transport& transport, bool shared) {
  const auto segment = transport.allocate(4096, shared);
  check::is_true(segment->direct(transport.rank()) == segment->local());
  std::memset(segment->local(), transport.rank() + 1, 4096);
  segment->flush();
  transport.barrier();
  for (int process = 0; process < transport.size(); ++process)
    check::equal(int{read<std::uint8_t>(*segment, process, 4095, 1)[0]}, process + 1);
  transport.barrier();
}

inline void shared_parts_lie_back_to_back(Transport& transport) {
  const auto segment = transport.allocate(4096, true);
  std::memset(segment->local(), transport.rank() + 1, 4096);
  segment->flush();
  transport.barrier();
  for (int process = 0; process < transport.size(); ++process) {
    check::is_true(segment->direct(process) == segment->direct(0) + process * 4096);
    check::equal(static_cast<int>(segment->direct(process)[4095]), process + 1);
  }
  transport.barrier();
}

inline void untouched_memory_costs_nothing(Transport& transport) {
  constexpr std::int64_t size = std::int64_t{1} << 36;  // 64 GiB in each process
  const auto segment = transport.allocate(size, true);
  double value = transport.rank() + 1;
  segment->put(line(transport.rank(), size - 8, &value, 1)).wait();
  segment->flush();
  transport.barrier();
  for (int process = 0; process < transport.size(); ++process)
    check::equal(read<double>(*segment, process, size - 8, 1)[0], process + 1);
  transport.barrier();
}

inline void add_test(const std::string& name, const Run& run, int count, const std::string& what,
                     const Body& body) {
  static std::vector<std::unique_ptr<std::string>> names;  // tests keep pointers
  names.push_back(std::make_unique<std::string>(name + ", " + std::to_string(count) + ": " + what));
  check::tests().push_back({names.back()->c_str(), [=] { run(count, body); }});
}

inline void add(const std::string& name, const Run& run, int count) {
  const auto test = [&](const std::string& what, const Body& body) {
    add_test(name, run, count, what, body);
  };
  test("ranks are distinct", ranks_are_distinct);
  test("has a description and a host", has_a_description_and_a_host);
  test("broadcast comes from its root", broadcast_comes_from_its_root);
  test("empty collectives are allowed", empty_collectives_are_allowed);
  test("all_gather keeps the order", all_gather_keeps_the_order);
  test("reductions", reductions);
  test("a barrier waits for all", a_barrier_waits_for_all);
  test("split orders by key", split_orders_by_key);
  test("a negative color gives nothing", a_negative_color_gives_nothing);
  test("duplicates serve threads of their own", duplicates_serve_threads_of_their_own);
  test("shared parts lie back to back", shared_parts_lie_back_to_back);
  test("untouched memory costs nothing", untouched_memory_costs_nothing);
  for (const bool shared : {true, false}) {
    const auto memory = [&](const char* what, const std::function<void(Transport&, bool)>& body) {
      test(std::string(what) + (shared ? " (shared)" : " (not shared)"),
           [=](Transport& transport) { body(transport, shared); });
    };
    memory("is zero at first", is_zero_at_first);
    memory("a segment may be empty", a_segment_may_be_empty);
    memory("puts are seen after a flush and a barrier", puts_are_seen_after_a_flush_and_a_barrier);
    memory("strided transfers", strided_transfers);
    memory("several gets are under way at once", several_gets_are_under_way_at_once);
    memory("an operation that is dropped is waited for", an_operation_that_is_dropped_is_waited_for);
    memory("accumulates of every type add up", accumulates_of_every_type_add_up);
    memory("a complex factor multiplies", a_complex_factor_multiplies);
    memory("accumulates are atomic", accumulates_are_atomic);
    memory("small integers are not accumulated", small_integers_are_not_accumulated);
    memory("tickets are unique", tickets_are_unique);
    memory("compare_swap has one winner", compare_swap_has_one_winner);
    memory("what is outside is refused", what_is_outside_is_refused);
    memory("clear zeros a range of the own part", clear_zeros_a_range_of_the_own_part);
    memory("populating keeps what is there", populating_keeps_what_is_there);
    memory("own part is direct", own_part_is_direct);
  }
}

}  // namespace conformance

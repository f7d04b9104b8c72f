// Procedure calls between ranks that are threads, as callers and targets see them.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <future>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "outcore/call.hpp"
#include "outcore/extend/transport.hpp"
#include "outcore/global_array.hpp"
#include "outcore/world.hpp"
#include "support/check.hpp"

namespace {

using namespace outcore;

void on_ranks(int count, const std::function<void(World&)>& body) {
  transport::run_threads(count, [&](std::unique_ptr<transport::Transport> transport) {
    World world(std::move(transport), {.memory_bytes = 64 << 20, .scratch = "/tmp"});
    body(world);
    world.close();
  });
}

template <class Number>
std::span<const std::byte> bytes_of(const std::vector<Number>& values) {
  return std::as_bytes(std::span(values));
}

std::vector<int> counting(std::size_t count) {
  std::vector<int> values(count);
  std::iota(values.begin(), values.end(), 1);
  return values;
}

/// Sends back what it was sent, header first.
void echo(Call call) {
  auto reply = std::make_shared<std::vector<std::byte>>(call.header().begin(), call.header().end());
  reply->insert(reply->end(), call.payload().begin(), call.payload().end());
  call.answer(*reply, reply);
}

TEST("header and payload arrive, the reply comes back, of any size") {
  on_ranks(3, [](World& world) {
    const auto echoes = world.register_procedure("echo", echo);
    // Sizes that fit into a packet, in one part and in several, and larger ones.
    for (const std::size_t count : std::initializer_list<std::size_t>{0, 1, 500, 1100, 16'382, 16'383, 60'000,
                                                                      65'536, 65'537, 300'000}) {
      const auto sent = counting(count);
      const std::vector<int> header{world.rank(), 17};
      std::vector<int> reply(count + 2);
      const int target = (world.rank() + 1) % world.size();
      auto request = world.call(target, echoes, bytes_of(header), bytes_of(sent),
                                {.reply = std::as_writable_bytes(std::span(reply))});
      request.wait();
      check::equal(request.reply().size(), reply.size() * sizeof(int));
      check::is_true(reply[0] == world.rank() && reply[1] == 17);
      check::is_true(std::equal(sent.begin(), sent.end(), reply.begin() + 2));
    }
    world.barrier();
  });
}

TEST("a reply without memory of the caller gets some") {
  on_ranks(2, [](World& world) {
    const auto echoes = world.register_procedure("echo", echo);
    const auto sent = counting(5000);
    auto request = world.call(1 - world.rank(), echoes, {}, bytes_of(sent), {.max_reply_bytes = 1 << 20});
    request.wait();
    check::is_true(std::memcmp(request.reply().data(), sent.data(), sent.size() * sizeof(int)) == 0);
    world.barrier();
  });
}

TEST("a reply that was put into the room of the caller arrives there") {
  on_ranks(2, [](World& world) {
    const auto squares = world.register_procedure("squares", [](Call call) {
      const auto room = call.room();
      check::equal(static_cast<std::int64_t>(room.size()), call.max_reply_bytes());
      const std::span numbers(reinterpret_cast<int*>(room.data()), room.size() / sizeof(int));
      for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<int>(i * i);
      call.answer(room.first(room.size() / 2));
    });
    for (const bool own : {false, true}) {
      std::vector<int> memory(4000, -1);
      CallOptions options{.max_reply_bytes = 16'000};
      if (own) options = {.reply = std::as_writable_bytes(std::span(memory))};
      auto request = world.call(1 - world.rank(), squares, {}, {}, options);
      request.wait();
      check::equal(request.reply().size(), 8000U);
      for (int i = 0; i < 2000; ++i) {
        int number = 0;
        std::memcpy(&number, request.reply().data() + 4 * i, sizeof number);
        check::equal(number, i * i);
      }
      if (own) check::is_true(memory[1999] == 1999 * 1999 && memory[2000] == -1);
    }
    world.barrier();
  });
}

TEST("more calls than there are slots for their payloads and replies all get through") {
  on_ranks(2, [](World& world) {
    const auto echoes = world.register_procedure("echo", echo);
    constexpr std::size_t calls = 300, count = 10'000;
    std::vector<std::vector<int>> sent, replies(calls, std::vector<int>(count));
    std::vector<Request> requests;
    for (std::size_t i = 0; i < calls; ++i) {
      sent.push_back(counting(count));
      sent[i][0] = static_cast<int>(i);
    }
    for (std::size_t i = 0; i < calls; ++i)
      requests.push_back(world.call(1 - world.rank(), echoes, {}, bytes_of(sent[i]),
                                    {.reply = std::as_writable_bytes(std::span(replies[i]))}));
    for (std::size_t i = 0; i < calls; ++i) {
      requests[i].wait();
      check::is_true(replies[i] == sent[i]);
    }
    world.barrier();
  });
}

TEST("a large payload lies in memory that suits direct I/O") {
  on_ranks(2, [](World& world) {
    const auto suits = world.register_procedure("suits", [](Call call) {
      const auto address = reinterpret_cast<std::uintptr_t>(call.payload().data());
      const char answer = address % 4096 == 0 ? 'y' : 'n';
      call.answer(std::as_bytes(std::span(&answer, 1)));
    });
    for (const std::size_t count : {2000, 10'000, 1'000'000}) {
      const auto sent = counting(count);
      char answer = 0;
      world
          .call(1 - world.rank(), suits, {}, bytes_of(sent),
                {.reply = std::as_writable_bytes(std::span(&answer, 1))})
          .wait();
      check::equal(answer, 'y');
    }
    world.barrier();
  });
}

TEST("a process calls itself") {
  on_ranks(1, [](World& world) {
    const auto echoes = world.register_procedure("echo", echo);
    const auto sent = counting(100'000);
    auto request = world.call(0, echoes, {}, bytes_of(sent), {.max_reply_bytes = 1 << 20});
    request.wait();
    check::equal(request.reply().size(), sent.size() * sizeof(int));
  });
}

TEST("a call is served while the target computes") {
  std::atomic<bool> served{false};
  on_ranks(2, [&](World& world) {
    const auto procedure = world.register_procedure("notice", [&](Call call) {
      served = true;
      call.answer();
    });
    if (world.rank() == 0) world.call(1, procedure, {}).wait();
    if (world.rank() == 1)
      while (!served) {  // never calls the library
      }
    world.barrier();
  });
}

TEST("calls of one process are served in the order they were made") {
  on_ranks(3, [](World& world) {
    std::vector<std::vector<int>> seen(3);
    const auto procedure = world.register_procedure("note", [&](Call call) {
      int number = 0;
      std::memcpy(&number, call.header().data(), sizeof number);
      seen[static_cast<std::size_t>(call.caller())].push_back(number);
      call.answer();
    });
    std::vector<Request> requests;
    for (int i = 0; i < 2000; ++i)
      requests.push_back(world.call(0, procedure, std::as_bytes(std::span(&i, 1))));
    for (auto& request : requests) request.wait();
    world.barrier();
    if (world.rank() == 0)
      for (const auto& each : seen) {
        check::equal(each.size(), 2000U);
        check::is_true(std::is_sorted(each.begin(), each.end()));
      }
    world.barrier();
  });
}

TEST("very many calls are outstanding, and none is lost") {
  on_ranks(3, [](World& world) {
    std::int64_t sum = 0;
    const auto procedure = world.register_procedure("add", [&](Call call) {
      int number = 0;
      std::memcpy(&number, call.header().data(), sizeof number);
      sum += number;
      call.answer();
    });
    std::vector<Request> requests;
    for (int i = 0; i < 20'000; ++i)
      requests.push_back(world.call(i % world.size(), procedure, std::as_bytes(std::span(&i, 1))));
    for (auto& request : requests) request.wait();
    world.barrier();
    std::int64_t expected = 0;
    for (int i = 0; i < 20'000; ++i)
      if (i % world.size() == world.rank()) expected += i * world.size();
    check::equal(sum, expected);
    world.barrier();
  });
}

TEST("payloads beyond the memory of the target wait at their callers") {
  on_ranks(4, [](World& world) {
    const auto echoes =
        world.register_procedure("count",
                                 [](Call call) {
                                   const auto payload = call.payload();
                                   const auto ones = std::count(payload.begin(), payload.end(), std::byte{1});
                                   call.answer(std::as_bytes(std::span(&ones, 1)));
                                 },
                                 {.may_block = true});
    const std::vector<std::byte> ones(std::size_t{10} << 20, std::byte{1});
    std::vector<Request> requests;
    for (int i = 0; i < 5; ++i)
      requests.push_back(world.call(0, echoes, {}, ones, {.max_reply_bytes = sizeof(std::ptrdiff_t)}));
    for (auto& request : requests) {
      request.wait();
      std::ptrdiff_t counted = 0;
      std::memcpy(&counted, request.reply().data(), sizeof counted);
      check::equal(counted, std::ptrdiff_t{10} << 20);
    }
    world.barrier();
  });
}

TEST("a call may be answered later, by another thread") {
  on_ranks(2, [](World& world) {
    std::promise<std::thread> answers;
    const auto procedure = world.register_procedure("later", [&](Call call) {
      answers.set_value(std::thread([call]() mutable { call.answer(call.header()); }));
    });
    const int number = 42 + world.rank();
    auto request = world.call(1 - world.rank(), procedure, std::as_bytes(std::span(&number, 1)), {},
                              {.max_reply_bytes = 4});
    request.wait();
    int reply = 0;
    std::memcpy(&reply, request.reply().data(), sizeof reply);
    check::equal(reply, number);
    world.barrier();
    answers.get_future().get().join();
  });
}

TEST("a procedure that may block calls another process and waits") {
  on_ranks(3, [](World& world) {
    const auto rank_of = world.register_procedure("rank", [&](Call call) {
      const int rank = world.rank();
      call.answer(std::as_bytes(std::span(&rank, 1)));
    });
    const auto next = world.register_procedure("rank of the next",
                                               [&](Call call) {
                                                 auto request = world.call((world.rank() + 1) % 3, rank_of,
                                                                           {}, {}, {.max_reply_bytes = 4});
                                                 request.wait();
                                                 call.answer(request.reply());
                                               },
                                               {.may_block = true});
    auto request = world.call((world.rank() + 1) % 3, next, {}, {}, {.max_reply_bytes = 4});
    request.wait();
    int reply = -1;
    std::memcpy(&reply, request.reply().data(), sizeof reply);
    check::equal(reply, (world.rank() + 2) % 3);
    world.barrier();
  });
}

TEST("calls return before they are served, and those that take long hold up no other procedure") {
  std::atomic<bool> may_end = false;
  on_ranks(2, [&](World& world) {
    std::atomic<int> running = 0;
    const auto takes_long = world.register_procedure("long",
                                                     [&](Call call) {
                                                       ++running;
                                                       may_end.wait(false);
                                                       call.answer(call.header());
                                                     },
                                                     {.may_block = true});
    const auto takes_short = world.register_procedure("short",
                                                      [&](Call call) {
                                                        const int now = running;
                                                        call.answer(std::as_bytes(std::span(&now, 1)));
                                                      },
                                                      {.may_block = true});
    if (world.rank() == 0) {
      const auto let_end = [](std::atomic<bool>* ends) {
        *ends = true;
        ends->notify_all();
      };
      std::unique_ptr<std::atomic<bool>, decltype(let_end)> at_end(&may_end);
      world.call(1, takes_short, {}, {}, {.max_reply_bytes = sizeof(int)}).wait();  // brings credits
      std::vector<Request> requests;
      for (int i = 0; i < 10; ++i) requests.push_back(world.call(1, takes_long, {}));
      int found = 0;
      while (found < 4) {
        auto request =
            world.call(1, takes_short, {}, {}, {.reply = std::as_writable_bytes(std::span(&found, 1))});
        request.wait();
      }
      check::equal(found, 4);
      for (const Request& each : requests) check::is_true(!each.done());
      at_end.reset();
      for (Request& each : requests) each.wait();
    }
    world.barrier();
  });
}

TEST("calls that wait for calls that wait do not use up what they wait for") {
  on_ranks(4, [](World& world) {
    std::uint32_t number = 0;
    number = world.register_procedure("depth",
                                      [&](Call call) {
                                        int left = 0;
                                        std::memcpy(&left, call.header().data(), sizeof left);
                                        if (left == 0) return call.answer(call.header());
                                        --left;
                                        auto request = world.call((world.rank() + 1) % 4, number,
                                                                  std::as_bytes(std::span(&left, 1)), {},
                                                                  {.max_reply_bytes = 4});
                                        request.wait();
                                        call.answer(request.reply());
                                      },
                                      {.may_block = true});
    world.barrier();
    std::vector<Request> requests;
    const int depth = 12;
    for (int i = 0; i < 20; ++i)
      requests.push_back(
          world.call(world.rank(), number, std::as_bytes(std::span(&depth, 1)), {}, {.max_reply_bytes = 4}));
    for (auto& request : requests) request.wait();
    world.barrier();
  });
}

TEST("what is to be run with the reply has been when the request is done") {
  on_ranks(2, [](World& world) {
    const auto echoes = world.register_procedure("echo", echo);
    const auto sent = counting(3000);
    std::vector<int> doubled(sent.size());
    auto request =
        world.call(1 - world.rank(), echoes, {}, bytes_of(sent),
                   {.max_reply_bytes = 1 << 20, .then = [&](std::span<std::byte> reply, const Error* error) {
                      check::is_true(!error);
                      for (std::size_t i = 0; i < doubled.size(); ++i) {
                        int value = 0;
                        std::memcpy(&value, reply.data() + i * sizeof value, sizeof value);
                        doubled[i] = 2 * value;
                      }
                    }});
    while (!request.test()) std::this_thread::yield();
    for (std::size_t i = 0; i < doubled.size(); ++i) check::equal(doubled[i], 2 * sent[i]);
    world.barrier();
  });
}

TEST("a procedure reduces its part of a global array") {
  on_ranks(4, [](World& world) {
    GlobalArray array(world, {40, 10}, ElementType::float64);
    const std::int64_t own = array.distribution().local_shape(world.rank()).product();
    const auto sums = world.register_procedure("sum", [&](Call call) {
      double sum = 0;
      const auto* first = reinterpret_cast<const double*>(array.local().data);
      for (std::int64_t i = 0; i < own; ++i) sum += first[i];
      call.answer(std::as_bytes(std::span(&sum, 1)));
    });
    std::fill_n(reinterpret_cast<double*>(array.local().data), own, 1 + world.rank());
    world.barrier();
    double total = 0;
    for (int process = 0; process < world.size(); ++process) {
      double part = 0;
      world.call(process, sums, {}, {}, {.reply = std::as_writable_bytes(std::span(&part, 1))}).wait();
      total += part;
    }
    world.barrier();
    check::equal(total, 1000.0);
  });
}

// ---- errors ----

Error failure_of(Request request) {
  return check::throws<Error>([&] { request.wait(); });
}

TEST("an error of the procedure reaches the caller, with the rank it happened at") {
  on_ranks(3, [](World& world) {
    const auto fails = world.register_procedure("fail", [&](Call) {
      throw Error(ENOSPC, {.attempted = "write of a chunk", .path = "/scratch/a", .size_bytes = 77},
                  world.rank());
    });
    const int target = (world.rank() + 2) % 3;
    const Error error = failure_of(world.call(target, fails, {}));
    check::equal(error.errno_value(), ENOSPC);
    check::equal(error.rank(), target);
    check::equal(error.context().size_bytes, 77);
    check::equal(error.context().path, std::string("/scratch/a"));
    world.barrier();
  });
}

TEST("so does any other exception, with its text") {
  on_ranks(2, [](World& world) {
    const auto fails =
        world.register_procedure("fail", [](Call) { throw std::runtime_error("no such orbital"); });
    const Error error = failure_of(world.call(1 - world.rank(), fails, {}));
    check::is_true(std::string(error.what()).find("no such orbital") != std::string::npos);
    check::is_true(std::string(error.what()).find("procedure 'fail'") != std::string::npos);
    world.barrier();
  });
}

TEST("an error with very long text is shortened, not lost") {
  on_ranks(2, [](World& world) {
    const auto fails = world.register_procedure(
        "fail", [](Call) { throw Error(EIO, {.attempted = "read", .detail = std::string(100'000, 'x')}); });
    const Error error = failure_of(world.call(1 - world.rank(), fails, {}));
    check::equal(error.errno_value(), EIO);
    check::is_true(error.context().detail.size() >= 1000);
    world.barrier();
  });
}

TEST("a reply larger than promised is an error, and hurts nobody") {
  on_ranks(2, [](World& world) {
    const auto echoes = world.register_procedure("echo", echo);
    const auto sent = counting(10'000);
    std::vector<int> small(100, 7);
    const Error error = failure_of(world.call(1 - world.rank(), echoes, {}, bytes_of(sent),
                                              {.reply = std::as_writable_bytes(std::span(small))}));
    check::equal(error.errno_value(), EMSGSIZE);
    check::equal(error.context().size_bytes, 40'000);
    check::is_true(small == std::vector<int>(100, 7));
    world.barrier();
  });
}

TEST("a call that the procedure forgets is an error, not a hang") {
  on_ranks(2, [](World& world) {
    const auto forgets = world.register_procedure("forget", [](Call) {});
    check::equal(failure_of(world.call(1 - world.rank(), forgets, {})).errno_value(), ECANCELED);
    world.barrier();
  });
}

TEST("a call is answered once") {
  std::atomic<int> refused{0};  // looked at when the procedure has ended, with the world
  on_ranks(1, [&](World& world) {
    const auto procedure = world.register_procedure("answer twice", [&](Call call) {
      Call copy = call;
      call.answer();
      for (Call* each : {&call, &copy})
        if (check::throws<Error>([&] { each->answer(); }).errno_value() == EBADF) ++refused;
    });
    world.call(0, procedure, {}).wait();
  });
  check::equal(refused.load(), 2);
}

TEST("unknown procedures and processes") {
  on_ranks(2, [](World& world) {
    check::equal(check::throws<Error>([&] { (void)world.call(1, 0, {}); }).errno_value(), ENOENT);
    (void)world.register_procedure("echo", echo);
    check::equal(failure_of(world.call(1 - world.rank(), 17, {})).errno_value(), ENOENT);
    check::equal(check::throws<Error>([&] { (void)world.procedure("eco"); }).errno_value(), ENOENT);
    check::equal(world.procedure("echo"), 0U);
    for (const int process : {-1, 2})
      check::equal(check::throws<Error>([&] { (void)world.call(process, 0, {}); }).errno_value(), EINVAL);
    const std::vector<std::byte> header(max_call_header_bytes + 1);
    check::equal(check::throws<Error>([&] { (void)world.call(0, 0, header); }).errno_value(), EMSGSIZE);
    world.barrier();
  });
}

TEST("a name is taken once, until it is unregistered") {
  on_ranks(2, [](World& world) {
    const auto first = world.register_procedure("echo", echo);
    check::equal(check::throws<Error>([&] { (void)world.register_procedure("echo", echo); }).errno_value(),
                 EEXIST);
    world.unregister_procedure(first);
    check::equal(failure_of(world.call(1 - world.rank(), first, {})).errno_value(), ENOENT);
    const auto second = world.register_procedure("echo", echo);
    world.call(1 - world.rank(), second, {}).wait();
    world.barrier();
  });
}

TEST("unregistering waits for calls that are being served") {
  on_ranks(2, [](World& world) {
    std::atomic<int> running{0}, ended{0};
    const auto slow = world.register_procedure("slow",
                                               [&](Call call) {
                                                 ++running;
                                                 std::this_thread::sleep_for(std::chrono::milliseconds(50));
                                                 ++ended;
                                                 call.answer();
                                               },
                                               {.may_block = true});
    auto request = world.call(world.rank(), slow, {});
    while (running == 0) std::this_thread::yield();
    world.unregister_procedure(slow);
    check::equal(ended.load(), 1);
    request.wait();
  });
}

TEST("waiting in a procedure that must not block is an error") {
  on_ranks(1, [](World& world) {
    const auto echoes = world.register_procedure("echo", echo);
    const auto waits = world.register_procedure("wait", [&](Call call) {
      world.call(0, echoes, {}).wait();
      call.answer();
    });
    check::equal(failure_of(world.call(0, waits, {})).errno_value(), EDEADLK);
  });
}

TEST("closing waits for outstanding calls, and refuses later ones") {
  on_ranks(3, [](World& world) {
    std::atomic<int> served{0};
    const auto slow = world.register_procedure("slow",
                                               [&](Call call) {
                                                 std::this_thread::sleep_for(std::chrono::milliseconds(20));
                                                 ++served;
                                                 call.answer();
                                               },
                                               {.may_block = true});
    for (int process = 0; process < 3; ++process) (void)world.call(process, slow, {});
    world.close();
    check::equal(served.load(), 3);
    check::equal(check::throws<Error>([&] { (void)world.call(0, slow, {}); }).errno_value(), EBADF);
  });
}

TEST("a procedure that calls on while its world is closing fails, and so does the call of it") {
  on_ranks(2, [](World& world) {
    std::atomic<bool> running{false};
    const auto echoes = world.register_procedure("echo", echo);
    const auto calls_on =
        world.register_procedure("call on late",
                                 [&world, &running, echoes](Call) {
                                   running = true;  // the last time that it is sure to be there
                                   while (true) {   // until this process is closing
                                     world.call(0, echoes, {}).wait();
                                     std::this_thread::sleep_for(std::chrono::milliseconds(1));
                                   }
                                 },
                                 {.may_block = true});
    if (world.rank() == 1)
      check::equal(failure_of(world.call(0, calls_on, {})).errno_value(), ESHUTDOWN);
    else
      while (!running) std::this_thread::yield();
  });
}

}  // namespace

TEST_MAIN

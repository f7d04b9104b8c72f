// The blocking engine: requests are complete when their calls return, and are made whole or in the pieces of
// a Fortran run-time library.
#include <optional>

#include "conformance/engine.hpp"
#include "device/blocking.hpp"
#include "device/fault.hpp"

using namespace outcore;
using namespace outcore::device;
using support::Bytes;
using support::pattern;
using support::same;
using support::Scratch;
using Kind = Operation::Kind;

namespace {

/// An engine that records the operations that reach it.
struct Noted {
  explicit Noted(Requests requests, PageCache page_cache = PageCache::buffered) {
    FaultPlan plan;
    plan.script = [this](std::uint64_t, const Operation& operation) {
      const bool moves = operation.kind == Kind::read || operation.kind == Kind::write;
      if (moves) sizes.push_back(operation.size_bytes);
      return fault;
    };
    engine = make_blocking_engine(make_fault_engine(make_thread_engine(2), std::move(plan)), requests);
    file.emplace(scratch.file(), OpenOptions{.page_cache = page_cache, .engine = engine.get()});
  }
  std::vector<std::int64_t> sizes;
  Fault fault = Fault::none;
  Scratch scratch;
  std::unique_ptr<Engine> engine;
  std::optional<File> file;

  void expect(const std::vector<std::int64_t>& expected) {
    check::equal(sizes.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) check::equal(sizes[i], expected[i]);
    sizes.clear();
  }
};

}  // namespace

TEST("an asynchronous request is complete when its call returns") {
  Noted noted(Requests::blocking);
  const Bytes data = pattern(100'000, 1);
  Bytes back(100'000);
  check::is_true(noted.file->write_async(data, 0).done(), "written");
  check::is_true(noted.file->read_async(back, 0).done(), "read");
  same(back, data);
  noted.expect({100'000, 100'000});
}

TEST("a Fortran record is moved through the buffer of the run-time library") {
  Noted noted(Requests::fortran);
  const Bytes data = pattern(65'536, 1);
  Bytes back(65'536);
  noted.file->write(data, 0);
  noted.expect({4, 65'524, 8});
  noted.file->read_async(back, 0).wait();
  noted.expect({8192, 57'344});
  same(back, data);
  noted.file->read(std::span(back).first(4096), 0);
  noted.expect({4096});
}

TEST("pieces of direct requests are pages") {
  Noted noted(Requests::fortran, PageCache::direct);
  if (!noted.file->direct_available()) return;
  Buffer data(65'536);
  noted.file->write(data.span(), 0);
  noted.expect({4096, 57'344, 4096});
}

TEST("a list is divided where the pieces are") {
  Noted noted(Requests::fortran);
  const Bytes data = pattern(20'001, 1);
  noted.file->write(data, 0);
  noted.sizes.clear();
  std::vector<Bytes> parts{Bytes(1), Bytes(8191), Bytes(0), Bytes(11'000), Bytes(809)};
  noted.file->read(support::list_of(parts), 0);
  noted.expect({8192, 11'809});
  Bytes whole;
  for (const Bytes& part : parts) whole.insert(whole.end(), part.begin(), part.end());
  same(whole, data);
}

TEST("an error of a later piece is delivered with its place") {
  Noted noted(Requests::fortran);
  noted.file->write(pattern(65'536, 1), 0);
  Bytes back(65'536);
  int pieces = 0;
  FaultPlan plan;
  plan.script = [&](std::uint64_t, const Operation& operation) {
    return operation.kind == Kind::read && ++pieces > 1 ? Fault::io_error : Fault::none;
  };
  const auto engine =
      make_blocking_engine(make_fault_engine(make_thread_engine(2), std::move(plan)), Requests::fortran);
  File file(noted.scratch.file(), {.page_cache = PageCache::buffered, .engine = engine.get()});
  const auto error = check::throws<Error>([&] { file.read(back, 0); });
  check::equal(error.errno_value(), EIO);
  check::equal(error.context().offset, 8192);
}

TEST("asynchronous requests need no such engine") {
  const auto error = check::throws<Error>(
      [] { static_cast<void>(make_blocking_engine(make_thread_engine(), Requests::asynchronous)); });
  check::equal(error.errno_value(), EINVAL);
}

int main(int argc, char** argv) {
  conformance::add("blocking", [] { return make_blocking_engine(make_thread_engine(), Requests::blocking); });
  conformance::add("fortran", [] { return make_blocking_engine(make_thread_engine(), Requests::fortran); });
  return check::run(argc, argv);
}

// Disk arrays with a codec that the program supplies.
#define OUTCORE_SKELETONS
#include <cerrno>
#include <memory>

#include "array/arrays.hpp"
#include "array/verify.hpp"
#include "outcore/disk_array.hpp"
#include "outcore/error.hpp"
#include "outcore/extend/codec.hpp"
#include "support/check.hpp"
#include "support/child.hpp"
#include "support/temporary_directory.hpp"

using namespace outcore;
using namespace outcore::test;

namespace {

constexpr auto number = store::Codec{130};
const Extents shape{40, 30};
const Box all = Box::whole(shape);

/// Rows whose second halves are zero.
Model rows() {
  Model model(shape);
  for (std::size_t k = 0; k < model.data.size() / 2; ++k) model.data[k] = 1.0 + static_cast<double>(k);
  return model;
}

void check_array(World& world, const std::string& path) {
  DiskArray disk = DiskArray::open(world, path);
  check::equal(store::text(disk.codec()), std::string("skeleton (3)"));
  Model model = rows(), back(shape);
  disk.read_all_async(back.memory(all), all).wait();
  check::is_true(back.data == model.data);
  std::ranges::fill(back.data, 0.0);
  disk.get(all, back.memory(all));
  check::is_true(back.data == model.data);
  world.barrier();  // others get what this process has
}

}  // namespace

TEST("an array of a codec that the program has not added is told so, and read once it has") {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/array";
  const int status = status_of_child([&] {
    store::add_codec(number, std::make_shared<store::SkeletonCodec>());
    in_worlds(2, options_in(directory), [&](World& world) {
      DiskArray disk(world, shape, ElementType::float64,
                     {.path = path, .chunk = {8, 8}, .codec = {.codec = number, .level = 3}});
      Model model = rows();
      if (world.rank() == 0) disk.put(all, model.memory(all));
      world.barrier();
      disk.flush();
      disk.close();
    });
  });
  check::equal(status, 0);
  in_worlds(2, options_in(directory), [&](World& world) {
    const Error error = check::throws<Error>([&] { (void)DiskArray::open(world, path); });
    check::equal(error.errno_value(), ENOTSUP);
    check::is_true(std::string(error.what()).find("codec 130") != std::string::npos, error.what());
  });
  store::add_codec(number, std::make_shared<store::SkeletonCodec>());
  in_worlds(3, options_in(directory), [&](World& world) { check_array(world, path); });
}

TEST("a codec is added once, under a number of programs") {
  const auto codec = std::make_shared<store::SkeletonCodec>();
  const auto errno_of = [](const auto& attempt) { return check::throws<Error>(attempt).errno_value(); };
  check::equal(errno_of([&] { store::add_codec(store::Codec::blosc2, codec); }), EINVAL);
  check::equal(errno_of([&] { store::add_codec(store::Codec{200}, nullptr); }), EINVAL);
  store::add_codec(store::Codec{200}, codec);
  check::equal(errno_of([&] { store::add_codec(store::Codec{200}, codec); }), EEXIST);
}

TEST("a codec that claims to have filled more than its room is refused, and nothing is written") {
  struct Boaster final : store::ChunkCodec {
    [[nodiscard]] std::string name() const override { return "boaster"; }
    [[nodiscard]] std::size_t encode(std::uint8_t, std::size_t, std::span<const std::byte>,
                                     std::span<std::byte> to) const override {
      return to.size() + 1;
    }
    void decode(std::size_t, std::span<const std::byte>, std::span<std::byte>) const override {}
  };
  constexpr auto boasts = store::Codec{131};
  store::add_codec(boasts, std::make_shared<Boaster>());
  const TemporaryDirectory directory;
  in_worlds(2, options_in(directory), [&](World& world) {
    DiskArray disk(world, shape, ElementType::float64, {.codec = {.codec = boasts, .level = 1}});
    Model model = rows();
    const Error error = check::throws<Error>([&] { disk.write_all_async(model.memory(all), all).wait(); });
    check::equal(error.errno_value(), EINVAL);
    check::is_true(std::string(error.what()).find("boaster") != std::string::npos, error.what());
    disk.close();
  });
}

TEST_MAIN

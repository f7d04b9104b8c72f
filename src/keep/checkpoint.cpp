#include "outcore/checkpoint.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <span>
#include <thread>

#include "device/held_lock.hpp"
#include "keep/checkpoint_facts.hpp"
#include "keep/checkpoint_place.hpp"
#include "keep/json.hpp"
#include "outcore/error.hpp"

namespace outcore {
namespace {

constexpr const char* attempted = "open checkpoint";
constexpr int contained = 2;  // arrays.<generation>/<name>: neither name may be a link
constexpr int max_attempts = 1000;

std::uint64_t number_of(const std::string& name) {
  return fingerprint(std::as_bytes(std::span(name)));
}

}  // namespace

struct Checkpoint::State {
  State(World& its_world, std::string its_path) : world(its_world), path(std::move(its_path)) {}

  World& world;
  std::string path, here, metadata;
  keep::CheckpointFacts facts;
  device::HeldLock lease;

  void read() {
    const DiskArray root = DiskArray::open(world, path);
    here = root.path();
    facts = keep::facts_of(root.metadata(), path);
    if (facts.generation == 0)
      throw Error(ENOENT, {.attempted = attempted, .path = path, .detail = "none was completed"});
    metadata = keep::text_of(facts.meta);
  }

  [[nodiscard]] const KeptArray& find(const std::string& name) const {
    for (const KeptArray& each : facts.arrays)
      if (each.name == name) return each;
    throw Error(ENOENT, {.attempted = "find array '" + name + "' of checkpoint",
                         .path = path,
                         .detail = "there is no array of that name"});
  }

  [[nodiscard]] DiskArray open_array(const std::string& name) {
    world.together("open array of checkpoint", number_of(name), [&] { (void)find(name); });
    const KeptArray& wanted = find(name);
    DiskArray found = DiskArray::open(world, path + "/" + keep::place_name(facts.generation) + "/" + name,
                                      true, {}, contained);
    keep::check_array(found, wanted, path);
    return found;
  }
};

Checkpoint::Checkpoint(std::unique_ptr<State> state) : state_(std::move(state)) {}
Checkpoint::~Checkpoint() = default;
Checkpoint::Checkpoint(Checkpoint&&) noexcept = default;
Checkpoint& Checkpoint::operator=(Checkpoint&&) noexcept = default;

Checkpoint Checkpoint::open(World& world, const std::function<std::string()>& make) {
  std::string path;
  world.enter(attempted, [&] {
    path = make();
    return number_of(path);
  });
  world.leave(std::nullopt);
  auto state = std::make_unique<State>(world, std::move(path));
  std::int64_t generation = -1;
  for (int attempt = 1; attempt <= max_attempts; ++attempt) {
    state->read();
    if (generation == state->facts.generation)
      throw Error(EIO, {.attempted = attempted, .path = state->path, .detail = "its arrays are not there"});
    generation = state->facts.generation;
    try {
      world.together(attempted, 1, [&] { state->lease = keep::hold_place(state->here, generation); });
      return Checkpoint(std::move(state));
    } catch (const Error& error) {  // at all processes: another checkpoint was saved meanwhile
      state->lease = {};
      if (error.errno_value() != ESTALE) throw;
      std::this_thread::sleep_for(std::chrono::milliseconds(std::min(attempt, 20)));
    }
  }
  throw Error(
      EBUSY,
      {.attempted = attempted, .path = state->path, .detail = "other processes save it again and again"});
}

const std::vector<KeptArray>& Checkpoint::arrays() const {
  return state_->facts.arrays;
}

const KeptArray& Checkpoint::find(const std::string& name) const {
  return state_->find(name);
}

const std::string& Checkpoint::metadata() const {
  return state_->metadata;
}

DiskArray Checkpoint::open_array(const std::string& name) {
  return state_->open_array(name);
}

void Checkpoint::read(const std::string& name, GlobalArray& into) {
  DiskArray file = state_->open_array(name);
  const KeptArray& array = state_->find(name);
  state_->world.together("read array of checkpoint", into.number(), [&] {
    if (into.type() != array.type || !std::ranges::equal(into.shape().values(), array.shape))
      throw Error(EINVAL, {.attempted = "read array '" + name + "' of checkpoint",
                           .path = state_->path,
                           .detail = "it is of type " + std::string(outcore::name(array.type)) +
                                     " and has other extents than, or another type than, " +
                                     std::string(outcore::name(into.type())) + into.shape().text()});
  });
  if (into.shape().product() == 0) return;
  const Box whole = Box::whole(file.shape());
  file.read_all_async(into, {whole}, whole).wait();
}

void Checkpoint::read(const std::string& name, const Elements& into) {
  DiskArray file = state_->open_array(name);
  const KeptArray& array = state_->find(name);
  const Extents shape = array.shape.empty() ? file.shape() : Extents(array.shape);
  Strided memory;
  state_->world.together("read array of checkpoint", 0,
                         [&] { memory = into.strided(shape, array.type, "kept array"); });
  if (shape.product() > 0) file.read_all_async(memory, Box::whole(file.shape())).wait();
}

void Checkpoint::read(const std::string& name, void* into, std::int64_t bytes) {
  DiskArray file = state_->open_array(name);
  const KeptArray& array = state_->find(name);
  std::int64_t wanted = static_cast<std::int64_t>(size_bytes(array.type));
  for (const std::int64_t extent : array.shape) wanted *= extent;
  state_->world.together("read array of checkpoint", 0, [&] {
    if (bytes != wanted || (wanted > 0 && !into))
      throw Error(EINVAL, {.attempted = "read array '" + name + "' of checkpoint",
                           .path = state_->path,
                           .detail = "it has " + std::to_string(wanted) + " bytes, the memory " +
                                     std::to_string(into ? bytes : 0)});
  });
  if (wanted == 0) return;
  const Box whole = Box::whole(file.shape());
  const Strided memory{static_cast<std::byte*>(into), row_major(file.shape(), size_bytes(array.type))};
  file.read_all_async(memory, whole).wait();
}

}  // namespace outcore

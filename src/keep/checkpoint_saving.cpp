// How a checkpoint is saved.

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <optional>
#include <random>
#include <span>

#include "keep/checkpoint_facts.hpp"
#include "keep/checkpoint_place.hpp"
#include "keep/json.hpp"
#include "outcore/checkpoint.hpp"
#include "outcore/error.hpp"
#include "outcore/extend/transport.hpp"

namespace outcore {
namespace {

using keep::CheckpointFacts;

constexpr const char* attempted = "save checkpoint";
constexpr int contained = 2;  // arrays.<generation>/<name>: both names are made here and must be no links
constexpr std::int64_t portion_bytes = std::int64_t{64} << 20;

struct Item {
  KeptArray array;
  const GlobalArray* global = nullptr;
  DiskArray* disk = nullptr;
  const void* values = nullptr;

  [[nodiscard]] bool empty() const { return std::ranges::find(array.shape, 0) != array.shape.end(); }
};

std::vector<std::int64_t> list_of(const Extents& extents) {
  return {extents.values().begin(), extents.values().end()};
}

/// Runs a step at the one process that acts for a directory: the first, or the first of each node.
template <class Step>
void at_one(World& world, Placement placement, Step step) {
  const bool acts = world.rank() == 0 || (placement == Placement::local && world.node_rank() == 0);
  world.together(attempted, 0, [&] {
    if (acts) step();
  });
}

/// Passes a disk array through memory, some rows of chunks at a time.
void copy(World& world, DiskArray& from, DiskArray& to) {
  const Extents& shape = from.shape();
  const std::int64_t row_bytes = std::max<std::int64_t>(
      1, shape.product() / shape[0] * static_cast<std::int64_t>(size_bytes(from.type())));
  const std::int64_t wanted = portion_bytes * world.size() / row_bytes, chunk = from.chunk()[0];
  const std::int64_t rows = std::max(chunk, wanted - wanted % chunk);
  for (std::int64_t first = 0; first < shape[0]; first += rows) {
    Box box = Box::whole(shape);
    box.begin[0] = first;
    box.end[0] = std::min(first + rows, shape[0]);
    GlobalArray memory(world, box.shape(), from.type());
    const Section all{Box::whole(box.shape())};
    from.read_all_async(memory, all, box).wait();
    to.write_all_async(memory, all, box).wait();
  }
}

}  // namespace

struct CheckpointSaving::State {
  State(World& its_world, CheckpointOptions its_options)
      : world(its_world), options(std::move(its_options)) {}

  World& world;
  CheckpointOptions options;
  std::vector<Item> items;
  std::optional<Error> failure;
  bool committed = false;

  static Item item(const std::string& name, Kept kind, ElementType type, std::vector<std::int64_t> shape) {
    Item made;
    made.array.name = name;
    made.array.kind = kind;
    made.array.type = type;
    made.array.file_shape = keep::file_shape(shape);
    made.array.shape = std::move(shape);
    return made;
  }

  void add(Item item) {
    const std::string& name = item.array.name;
    try {
      if (!keep::is_name(name))
        throw Error(EINVAL, {.attempted = "save array '" + name + "'",
                             .detail = "names are made of letters, digits and _ . + -"});
      for (const Item& each : items)
        if (each.array.name == name)
          throw Error(EINVAL, {.attempted = "save array '" + name + "'", .detail = "the name comes twice"});
      (void)Extents(item.array.file_shape);  // which has a limit
    } catch (const Error& error) {
      if (!failure) failure = error;
      throw;
    }
    items.push_back(std::move(item));
  }

  /// A fingerprint of the arrays that are saved.
  [[nodiscard]] std::uint64_t number(const std::string& meta) const {
    CheckpointFacts facts{.arrays = {}, .meta = meta};
    for (const Item& each : items) facts.arrays.push_back(each.array);
    const std::string all = keep::as_json(facts) + options.path;
    return fingerprint(std::as_bytes(std::span(all)));
  }

  /// The small array of the existing checkpoint, or a new one.
  [[nodiscard]] DiskArray root() const {
    const auto there = [&]() -> std::optional<DiskArray> {
      try {
        return DiskArray::open(world, options.path, false);
      } catch (const Error& error) {  // the same at all processes
        if (error.errno_value() == ENOENT) return std::nullopt;
        throw;
      }
    };
    if (auto found = there()) {
      if (keep::is_checkpoint(found->metadata())) return *std::move(found);
      throw Error(
          EEXIST,
          {.attempted = attempted, .path = options.path, .detail = "there is a disk array of that name"});
    }
    // Files of a job that was killed before its commit must not prevent this one.
    DiskArray made(world, {1}, ElementType::int64,
                   {.path = options.path,
                    .overwrite = true,
                    .placement = options.placement,
                    .metadata = keep::as_json({})});
    made.flush();
    return made;
  }

  /// An identity that is the same at all processes, and that no other checkpoint has, nor a copy with later
  /// generations of its own.
  [[nodiscard]] std::string label() const {
    std::array<char, 17> digits{};
    if (world.rank() == 0) {
      std::random_device random;
      std::snprintf(digits.data(), digits.size(), "%08x%08x", random(), random());
    }
    world.transport().broadcast(std::as_writable_bytes(std::span(digits)), 0);
    return digits.data();
  }

  /// The options, with the filter that suits the elements.
  [[nodiscard]] store::CodecOptions codec_for(ElementType type) const {
    store::CodecOptions codec = options.codec;
    if (codec.codec == store::Codec::blosc2) codec.filter = store::blosc2_for(size_bytes(type)).filter;
    return codec;
  }

  [[nodiscard]] DiskArray file_for(const Item& item, const std::string& path, Placement placement) const {
    DiskArrayOptions its{.path = path + "/" + item.array.name,
                         .placement = placement,
                         .codec = codec_for(item.array.type),
                         .identity = item.array.identity,
                         .contained = contained};
    if (item.disk) {
      its.chunk = item.disk->chunk();
      its.codec = item.disk->codec();
    }
    return DiskArray(world, Extents(item.array.file_shape), item.array.type, its);
  }

  /// Writes all arrays, and returns the facts of their files.
  void write(std::vector<DiskArray>& files, const std::string& path, Placement placement) {
    std::vector<Request> under_way;
    for (Item& item : items) {
      DiskArray& file = files.emplace_back(file_for(item, path, placement));
      if (item.empty()) continue;
      const Box whole = Box::whole(file.shape());
      if (item.disk)
        copy(world, *item.disk, file);
      else if (item.global)
        under_way.push_back(file.write_all_async(*item.global, {whole}, whole));
      else
        under_way.push_back(
            file.write_all_async(Strided{static_cast<std::byte*>(const_cast<void*>(item.values)),
                                         row_major(file.shape(), size_bytes(item.array.type))},
                                 whole));
    }
    for (Request& each : under_way) each.wait();
    for (std::size_t i = 0; i < files.size(); ++i) {
      files[i].flush();
      items[i].array.identity = files[i].identity();
      items[i].array.commits = static_cast<std::int64_t>(files[i].generation());
      files[i].close();
    }
  }

  void commit(const std::string& metadata) {
    std::string meta;
    world.enter(attempted, [&] {
      if (committed) throw Error(EINVAL, {.attempted = attempted, .detail = "it was committed before"});
      if (failure) throw Error(*failure);
      try {
        meta = keep::quoted(metadata);
      } catch (const keep::JsonError& error) {
        throw Error(EINVAL, {.attempted = attempted, .detail = std::string("metadata: ") + error.what()});
      }
      return number(meta);
    });
    world.leave(std::nullopt);
    committed = true;
    DiskArray its_root = root();
    const Placement placement = its_root.placement();
    const std::string here = its_root.path();  // as this process sees it
    CheckpointFacts facts{.arrays = {}, .meta = std::move(meta)};
    facts.generation = keep::facts_of(its_root.metadata(), options.path).generation + 1;
    const std::string checkpoint = label();
    for (Item& item : items)
      item.array.identity = "array " + item.array.name + " of generation " +
                            std::to_string(facts.generation) + " of checkpoint " + checkpoint;
    at_one(world, placement, [&] { keep::make_place(here, facts.generation); });
    std::vector<DiskArray> files;
    try {
      write(files, options.path + "/" + keep::place_name(facts.generation), placement);
    } catch (const Error&) {  // at all processes
      files.clear();
      at_one(world, placement, [&] { keep::remove_place(here, facts.generation); });
      throw;
    }
    for (const Item& item : items) facts.arrays.push_back(item.array);
    its_root.flush(keep::as_json(facts));
    at_one(world, placement, [&] { keep::remove_other_places(here, facts.generation); });
  }
};

CheckpointSaving::CheckpointSaving(World& world, CheckpointOptions options)
    : state_(std::make_unique<State>(world, std::move(options))) {}
CheckpointSaving::~CheckpointSaving() = default;
CheckpointSaving::CheckpointSaving(CheckpointSaving&&) noexcept = default;
CheckpointSaving& CheckpointSaving::operator=(CheckpointSaving&&) noexcept = default;

void CheckpointSaving::add(const std::string& name, const GlobalArray& array) {
  Item item = state_->item(name, Kept::global, array.type(), list_of(array.shape()));
  item.global = &array;
  state_->add(std::move(item));
}

void CheckpointSaving::add(const std::string& name, DiskArray& array) {
  Item item = state_->item(name, Kept::disk, array.type(), list_of(array.shape()));
  item.disk = &array;
  state_->add(std::move(item));
}

void CheckpointSaving::add(const std::string& name, const ConstElements& values, const Extents& shape) {
  const std::byte* first = nullptr;
  try {
    first = values.contiguous(shape, values.type(), "kept array");
  } catch (const Error& error) {
    refuse(error);
    throw;
  }
  add(name, values.type(), list_of(shape), first);
}

void CheckpointSaving::add(const std::string& name, ElementType type, const std::vector<std::int64_t>& shape,
                           const void* values) {
  Item item = state_->item(name, Kept::values, type, shape);
  item.values = values;
  state_->add(std::move(item));
}

void CheckpointSaving::refuse(const Error& error) {
  if (!state_->failure) state_->failure = error;
}

void CheckpointSaving::commit(const std::string& metadata) {
  state_->commit(metadata);
}

}  // namespace outcore

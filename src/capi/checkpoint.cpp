// The C interface of checkpoints.

#include "outcore/checkpoint.hpp"

#include <cstring>
#include <vector>

#include "capi/arrays.hpp"
#include "outcore/outcore.h"

namespace outcore::capi {
namespace {

/// A saving; its arrays live as long as it.
struct Saving {
  std::shared_ptr<World> world;
  CheckpointSaving saving;
  std::vector<std::shared_ptr<void>> keeps = {};
};

constexpr const char* what = "checkpoint";
constexpr const char* what_saving = "checkpoint to be saved";

// Leaked: at exit no collective calls are possible any more.
auto& savings = *new Table<int, std::shared_ptr<Saving>>;
auto& checkpoints = *new Table<int, InWorld<Checkpoint>>;

std::string name_of(const char* name) {
  if (!name) invalid("use an array of a checkpoint", "its name is NULL");
  return name;
}

/// Adds an array; if that fails, the commit fails with the same error.
template <class Add>
int add(int handle, Add its) {
  return guarded([&] {
    const auto saving = savings.get(handle, EBADF, what_saving);
    try {
      its(*saving);
    } catch (const Error& error) {
      saving->saving.refuse(error);
      throw;
    }
    return OC_OK;
  });
}

}  // namespace
}  // namespace outcore::capi

using namespace outcore::capi;
using outcore::Checkpoint;

extern "C" {

int oc_checkpoint_begin(int world, const char* path, const oc_checkpoint_options* options, int* saving) {
  return guarded([&] {
    constexpr const char* attempted = "save checkpoint";
    auto its_world = world_of(world);
    if (!saving) invalid(attempted, "saving is NULL");
    auto begun = std::make_shared<Saving>(
        Saving{its_world, outcore::CheckpointSaving(*its_world, {.path = path ? path : ""})});
    try {
      if (!path || !*path) invalid(attempted, "there is no path");
      const oc_checkpoint_options given = options_of(options, attempted);
      begun->saving =
          outcore::CheckpointSaving(*its_world, {.path = path,
                                                 .codec = codec_of(given.codec, sizeof(double)),
                                                 .placement = placement_of(given.placement, attempted)});
    } catch (const outcore::Error& error) {  // the others may wait in the commit
      begun->saving.refuse(error);
      failed(error.errno_value(), error.what());
      *saving = savings.add(std::move(begun));
      return error.errno_value();
    }
    *saving = savings.add(std::move(begun));
    return OC_OK;
  });
}

int oc_checkpoint_add_ga(int saving, const char* name, int ga) {
  return add(saving, [&](Saving& its) {
    const auto array = global_array_of(ga);
    its.keeps.push_back(array.thing);
    its.saving.add(name_of(name), *array.thing);
  });
}

int oc_checkpoint_add_dra(int saving, const char* name, int dra) {
  return add(saving, [&](Saving& its) {
    const auto array = disk_array_of(dra);
    its.keeps.push_back(array.thing);
    its.saving.add(name_of(name), *array.thing);
  });
}

int oc_checkpoint_add_values(int saving, const char* name, int type, int rank, const int64_t* shape,
                             const void* values) {
  return add(saving, [&](Saving& its) {
    constexpr const char* attempted = "save values";
    const auto its_type = element_type_of(type, attempted);
    const auto extents = extents_of(rank, shape, attempted);
    const auto list = extents.values();
    for (const std::int64_t extent : list)
      if (extent < 0) invalid(attempted, "an extent is negative");
    if (!values && extents.product() > 0) invalid(attempted, "the memory is NULL");
    its.saving.add(name_of(name), its_type, {list.begin(), list.end()}, values);
  });
}

int oc_checkpoint_commit(int saving, const char* metadata) {
  return guarded([&] {
    savings.take(saving, EBADF, what_saving)->saving.commit(metadata ? metadata : "");
    return OC_OK;
  });
}

int oc_checkpoint_abandon(int saving) {
  return guarded([&] {
    (void)savings.take(saving, EBADF, what_saving);
    return OC_OK;
  });
}

int oc_checkpoint_open(int world, const char* path, int* checkpoint) {
  return guarded([&] {
    auto its_world = world_of(world);
    auto opened = std::make_shared<Checkpoint>(Checkpoint::open(*its_world, [&]() -> std::string {
      if (!checkpoint)
        invalid("open checkpoint", "checkpoint is NULL");  // in the gate, so all processes get it
      if (!path) invalid("open checkpoint", "path is NULL");
      return path;
    }));
    *checkpoint = checkpoints.add({std::move(its_world), std::move(opened)});
    return OC_OK;
  });
}

int oc_checkpoint_metadata(int checkpoint, char* text, size_t size, int64_t* bytes) {
  return on(checkpoints, checkpoint, what,
            [&](Checkpoint& open) { hand_out(open.metadata(), text, size, bytes); });
}

int oc_checkpoint_count(int checkpoint, int* count) {
  return on(checkpoints, checkpoint, what, [&](Checkpoint& open) {
    if (!count) invalid("count arrays of a checkpoint", "count is NULL");
    *count = static_cast<int>(open.arrays().size());
  });
}

int oc_checkpoint_name(int checkpoint, int number, char* name, size_t size) {
  return on(checkpoints, checkpoint, what, [&](Checkpoint& open) {
    if (number < 0 || static_cast<std::size_t>(number) >= open.arrays().size())
      invalid("name an array of a checkpoint", "it has no array of that number");
    hand_out(open.arrays()[static_cast<std::size_t>(number)].name, name, size, nullptr);
  });
}

int oc_checkpoint_inquire(int checkpoint, const char* name, int* kind, int* type, int* rank, int64_t* shape) {
  return on(checkpoints, checkpoint, what, [&](Checkpoint& open) {
    const outcore::KeptArray& array = open.find(name_of(name));
    const outcore::Extents extents(array.shape);
    if (kind) *kind = static_cast<int>(array.kind);
    if (type) *type = static_cast<int>(array.type);
    if (rank) *rank = extents.rank();
    hand_out(extents, shape);
  });
}

int oc_checkpoint_read_ga(int checkpoint, const char* name, int ga) {
  return guarded([&] {
    const auto open = checkpoints.get(checkpoint, EBADF, what);
    const auto array = global_array_in(*open.world, ga);
    open.thing->read(name ? name : "", *array.thing);  // an invalid name is an error at all processes
    return OC_OK;
  });
}

int oc_checkpoint_read_values(int checkpoint, const char* name, void* values, int64_t bytes) {
  return on(checkpoints, checkpoint, what,
            [&](Checkpoint& open) { open.read(name ? name : "", values, bytes); });
}

int oc_checkpoint_open_dra(int checkpoint, const char* name, int* array) {
  return guarded([&] {
    const auto open = checkpoints.get(checkpoint, EBADF, what);
    open.world->together("open array of checkpoint", 0, [&] {
      if (!array) invalid("open array of checkpoint", "array is NULL");
    });
    *array = add_disk_array(
        {open.world, std::make_shared<outcore::DiskArray>(open.thing->open_array(name ? name : ""))});
    return OC_OK;
  });
}

int oc_checkpoint_close(int checkpoint) {
  return guarded([&] {
    (void)checkpoints.take(checkpoint, EBADF, what);
    return OC_OK;
  });
}

}  // extern "C"

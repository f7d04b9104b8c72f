#include "array/array_services.hpp"

#include <cerrno>
#include <memory>
#include <string>

#include "outcore/error.hpp"

namespace outcore::array {

ArrayServices& ArrayServices::of(World& world) {
  std::shared_ptr<World::Companion>& companion = world.companion();
  if (!companion) companion = std::make_shared<ArrayServices>(world);
  return *static_cast<ArrayServices*>(companion.get());
}

ArrayServices& ArrayServices::present(World& world, std::string_view attempted) {
  if (!world.companion())
    throw Error(EINVAL, {.attempted = std::string(attempted),
                         .detail = "the world has no service for arrays: call DiskArray::prepare before, "
                                   "which is collective"});
  return of(world);
}

}  // namespace outcore::array

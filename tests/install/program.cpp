// A C++ program of a user: an array and a file of one process, and an error.
#include <cstdio>
#include <vector>

#include "outcore/error.hpp"
#include "outcore/exclusive_file.hpp"
#include "outcore/global_array.hpp"
#include "outcore/world.hpp"

int main() {
  outcore::World world = outcore::World::self();
  outcore::GlobalArray array(world, {3, 4}, outcore::ElementType::float64);
  std::vector<double> values(12, 1.5), found(12);
  array.put({{0, 0}, {3, 4}}, values);
  array.get({{0, 0}, {3, 4}}, found);
  if (found != values) return 1;

  outcore::file::ExclusiveFile file("values");
  file.write(values, 0);
  found.assign(12, 0.0);
  if (file.read_async(found, 0).wait() != 96 || found != values) return 2;
  file.close();

  try {
    found.resize(16);
    array.get({{0, 0}, {4, 4}}, found);
  } catch (const outcore::Error& error) {
    std::puts(error.what());
    return 0;
  }
  return 3;
}

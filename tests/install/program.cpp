// What a user writes: an array and a file of one process, and an error.
#include <cstdio>
#include <span>
#include <vector>

#include "outcore/error.hpp"
#include "outcore/exclusive_file.hpp"
#include "outcore/extend/transport.hpp"
#include "outcore/global_array.hpp"
#include "outcore/world.hpp"

int main() {
  outcore::World world(outcore::transport::self());
  outcore::GlobalArray array(world, {3, 4}, outcore::ElementType::float64);
  std::vector<double> values(12, 1.5), found(12);
  const outcore::Box all = outcore::Box::whole(array.shape());
  const auto memory = [&](std::vector<double>& of) {
    return outcore::Strided{reinterpret_cast<std::byte*>(of.data()), outcore::row_major(array.shape(), 8)};
  };
  array.put(all, memory(values));
  array.get(all, memory(found));
  if (found != values) return 1;

  outcore::file::ExclusiveFile file("values");
  file.write(std::as_bytes(std::span(values)), 0);
  found.assign(12, 0.0);
  if (file.read_async(std::as_writable_bytes(std::span(found)), 0).wait() != 96 || found != values) return 2;
  file.close();

  try {
    array.get({{0, 0}, {4, 4}}, memory(found));
  } catch (const outcore::Error& error) {
    std::puts(error.what());
    return 0;
  }
  return 3;
}

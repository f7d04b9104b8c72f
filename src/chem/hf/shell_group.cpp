#include "chem/hf/shell_group.hpp"

#include <algorithm>
#include <cerrno>
#include <set>
#include <string>

#include "outcore/error.hpp"

namespace outcore::chem {
namespace {

Error wrong(const std::string& what) {
  return Error(EINVAL, {.attempted = "group of shells", .detail = what});
}

/// The shell to which an operation carries all components of `shell`, each to the equivalent component at its
/// position.
std::uint16_t image_of(const Basis& basis, const std::vector<int>& shell_of, std::span<const int> images,
                       int shell) {
  const auto from = basis.components(shell);
  const int to = shell_of[std::size_t(images[std::size_t(from.front().number)])];
  const auto there = basis.components(to);
  bool alike = basis.kind(to) == basis.kind(shell) && there.size() == from.size();
  for (std::size_t c = 0; alike && c < from.size(); ++c)
    alike = images[std::size_t(from[c].number)] == there[c].number;
  if (!alike)
    throw wrong("shell " + std::to_string(from.front().number) + " goes into one that is not equivalent");
  return std::uint16_t(to);
}

}  // namespace

ShellGroup::ShellGroup(const Basis& basis, std::span<const int> images)
    : shells_(std::size_t(basis.shells())) {
  const auto count = std::size_t(basis.component_count());
  if (images.size() % count != 0) throw wrong("images must be [operations][" + std::to_string(count) + "]");
  if (std::ranges::any_of(images, [&](int image) { return image < 0 || image >= int(count); }))
    throw wrong("an image is none of " + std::to_string(count) + " shells");
  std::vector<int> shell_of(count);
  for (int shell = 0; shell < basis.shells(); ++shell)
    for (const auto& component : basis.components(shell)) shell_of[std::size_t(component.number)] = shell;
  for (std::size_t at = 0; at < images.size(); at += count)
    for (int shell = 0; shell < basis.shells(); ++shell)
      images_.push_back(image_of(basis, shell_of, images.subspan(at, count), shell));
  check_group();
}

void ShellGroup::check_group() const {
  using Permutation = std::vector<std::uint16_t>;
  Permutation identity(shells_);
  for (std::size_t shell = 0; shell < shells_; ++shell) identity[shell] = std::uint16_t(shell);
  std::set<Permutation> found{identity};
  for (const std::uint16_t* image = images_.data(); image != end(); image += shells_)
    if (!found.emplace(image, image + shells_).second)
      throw wrong("two operations permute shells in the same way");
  for (const Permutation& a : found)
    for (const Permutation& b : found) {
      Permutation product(shells_);
      for (std::size_t shell = 0; shell < shells_; ++shell) product[shell] = a[b[shell]];
      if (!found.contains(product) || (&a == &b && product != identity))
        throw wrong("the operations are no group of operations that are their own inverses");
    }
}

}  // namespace outcore::chem

#include "dio/chunks/portions.hpp"

#include <algorithm>

namespace outcore::dio {

Portions::Portions(const Box& box, const Extents& chunk, std::int64_t max_elements)
    : box_(box), step_(box.shape()), first_(box.shape()), counts_(Extents::filled(box.rank(), 1)) {
  if (box.empty()) {
    counts_ = Extents::filled(box.rank(), 0);
    return;
  }
  for (int i = 0; i < box.rank(); ++i) {
    const std::int64_t others = step_.product() / step_[i];
    std::int64_t step = std::max<std::int64_t>(max_elements / others, 1);
    if (step >= step_[i]) break;
    if (step > chunk[i]) step -= step % chunk[i];
    step_[i] = step;
    first_[i] = std::min(step - box.begin[i] % step, box.shape()[i]);
    counts_[i] = 1 + (box.shape()[i] - first_[i] + step - 1) / step;
  }
}

Box Portions::operator[](std::int64_t i) const {
  Box portion = box_;
  for (int k = box_.rank() - 1; k >= 0; --k) {
    const std::int64_t index = i % counts_[k];
    i /= counts_[k];
    portion.begin[k] = index == 0 ? box_.begin[k] : box_.begin[k] + first_[k] + (index - 1) * step_[k];
    portion.end[k] = std::min(box_.begin[k] + first_[k] + index * step_[k], box_.end[k]);
  }
  return portion;
}

}  // namespace outcore::dio

// Distributions against loops over all elements.
#include <algorithm>
#include <cerrno>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "outcore/distribution.hpp"
#include "outcore/error.hpp"
#include "support/check.hpp"

using namespace outcore;

namespace {

using Begins = std::vector<std::vector<std::int64_t>>;

std::int64_t below(std::mt19937& random, std::int64_t limit) {
  return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(limit));
}

Distribution random_irregular(const Extents& shape, int processes, std::mt19937& random) {
  Begins begins;
  std::int64_t cells = 1;
  for (const std::int64_t extent : shape.values()) {
    std::set<std::int64_t> from{0};
    while (extent > 1 && cells * (std::ssize(from) + 1) <= processes && std::ssize(from) < extent &&
           below(random, 3))
      from.insert(below(random, extent));
    cells *= std::ssize(from);
    begins.emplace_back(from.begin(), from.end());
  }
  return Distribution::irregular(shape, processes, begins);
}

Distribution random_distribution(std::mt19937& random) {
  const int rank = 1 + static_cast<int>(below(random, 4)), processes = 1 + static_cast<int>(below(random, 9));
  Extents shape = Extents::filled(rank, 1), block = shape;
  for (int i = 0; i < rank; ++i) {
    shape[i] = 1 + below(random, rank < 3 ? 20 : 7);
    block[i] = 1 + below(random, 5);
  }
  switch (below(random, 3)) {
    case 0:
      return Distribution::regular(shape, processes);
    case 1:
      return random_irregular(shape, processes, random);
    default:
      return Distribution::block_cyclic(shape, processes, block);
  }
}

Box random_box(const Extents& shape, std::mt19937& random) {
  Box box = Box::whole(shape);
  for (int i = 0; i < shape.rank(); ++i) {
    box.begin[i] = below(random, shape[i] + 1);
    box.end[i] = box.begin[i] + below(random, shape[i] - box.begin[i] + 1);
  }
  return box;
}

template <class Visit>
void for_each_index(const Box& box, Visit visit) {
  const Extents shape = box.shape();
  for (std::int64_t k = 0; k < shape.product(); ++k) {
    Extents index = box.begin;
    std::int64_t rest = k;
    for (int i = shape.rank() - 1; i >= 0; --i) {
      index[i] += rest % shape[i];
      rest /= shape[i];
    }
    visit(index);
  }
}

/// Position in memory of `index`, which lies in `part`, whose first element is at `element`.
std::int64_t position(const Distribution& distribution, int process, const Box& part, std::int64_t element,
                      const Extents& index) {
  const Extents stride = row_major(distribution.local_shape(process), 1);
  for (int i = 0; i < part.rank(); ++i) element += (index[i] - part.begin[i]) * stride[i];
  return element;
}

using Visited = std::vector<std::pair<Extents, Distribution::Location>>;

bool before(const Visited::value_type& a, const Visited::value_type& b) {
  return std::ranges::lexicographical_compare(a.first.values(), b.first.values());
}

/// Every element of the parts, with the position that the distribution gives for it.
Visited visited_by_parts(const Distribution& distribution, const Box& box) {
  Visited all;
  distribution.for_each_part(box, [&](int process, const Box& part, std::int64_t element) {
    for_each_index(part, [&](const Extents& index) {
      all.push_back({index, {process, position(distribution, process, part, element, index)}});
    });
  });
  std::ranges::sort(all, before);
  return all;
}

void for_random_ones(const std::function<void(const Distribution&, std::mt19937&)>& body) {
  for (unsigned seed = 0; seed < 600; ++seed) {
    std::mt19937 random(seed);
    body(random_distribution(random), random);
  }
}

std::string refusal(const std::function<void()>& body) {
  const Error error = check::throws<Error>(body);
  check::equal(error.errno_value(), EINVAL);
  return error.what();
}

}  // namespace

TEST("every element has a place of its own inside the memory of its process") {
  for_random_ones([](const Distribution& distribution, std::mt19937&) {
    std::set<std::pair<int, std::int64_t>> places;
    for_each_index(Box::whole(distribution.shape()), [&](const Extents& index) {
      const auto location = distribution.locate(index.values());
      check::equal(location.process, distribution.owner(index));
      check::is_true(location.process < distribution.processes());
      check::is_true(location.element < distribution.local_shape(location.process).product());
      check::is_true(places.emplace(location.process, location.element).second, "two elements at one place");
    });
    std::int64_t held = 0, most = 0;
    for (int process = 0; process < distribution.processes(); ++process) {
      const std::int64_t here = distribution.local_shape(process).product();
      held += here;
      most = std::max(most, here);
    }
    check::equal(held, distribution.shape().product());
    check::equal(distribution.local_elements_max(), most);
  });
}

TEST("the parts of a box are its elements, each once, where they are") {
  for_random_ones([](const Distribution& distribution, std::mt19937& random) {
    const Box box = random_box(distribution.shape(), random);
    const Visited all = visited_by_parts(distribution, box);
    std::size_t k = 0;
    for_each_index(box, [&](const Extents& index) {
      check::is_true(k < all.size() && all[k].first == index, "an element is missing or there twice");
      const auto location = distribution.locate(index.values());
      check::equal(all[k].second.process, location.process);
      check::equal(all[k].second.element, location.element);
      ++k;
    });
    check::equal(all.size(), k);
  });
}

TEST("the parts of one process are those among all parts that it holds") {
  for_random_ones([](const Distribution& distribution, std::mt19937& random) {
    const Box box = random_box(distribution.shape(), random);
    using Part = std::tuple<int, std::string, std::int64_t>;
    std::vector<Part> all, each;
    const auto into = [](std::vector<Part>& list) {
      return [&list](int process, const Box& part, std::int64_t element) {
        list.emplace_back(process, part.text(), element);
      };
    };
    distribution.for_each_part(box, into(all));
    for (int process = 0; process < distribution.processes(); ++process)
      distribution.for_each_part_of(process, box, into(each));
    std::ranges::sort(all);
    std::ranges::sort(each);
    check::is_true(all == each);
  });
}

TEST("patches hold what their process owns") {
  for_random_ones([](const Distribution& distribution, std::mt19937&) {
    if (distribution.kind() == Distribution::Kind::block_cyclic) return;
    for (int process = 0; process < distribution.processes(); ++process) {
      const Box patch = distribution.patch(process);
      check::is_true(patch.empty() || patch.shape() == distribution.local_shape(process));
      for_each_index(patch, [&](const Extents& index) { check::equal(distribution.owner(index), process); });
    }
  });
}

TEST("regular blocks differ by at most one in each dimension") {
  const auto distribution = Distribution::regular({10, 7}, 6);
  check::is_true((distribution.grid() == Extents{3, 2}));
  check::is_true((distribution.patch(0) == Box{{0, 0}, {4, 4}}));
  check::is_true((distribution.patch(5) == Box{{7, 4}, {10, 7}}));
}

TEST("regular grids are nearly cubic, and cut rows last") {
  check::is_true((Distribution::regular({100, 100}, 2).grid() == Extents{2, 1}));
  check::is_true((Distribution::regular({100, 100}, 12).grid() == Extents{4, 3}));
  check::is_true((Distribution::regular({10, 1000}, 4).grid() == Extents{1, 4}));
  check::is_true((Distribution::regular({50, 50, 50}, 8).grid() == Extents{2, 2, 2}));
  check::is_true((Distribution::regular({50, 50}, 7).grid() == Extents{7, 1}));
}

TEST("a small array leaves processes without elements") {
  const auto distribution = Distribution::regular({3, 2}, 7);
  check::is_true((distribution.grid() == Extents{3, 2}));
  check::is_true(distribution.patch(6).empty());
  check::equal(distribution.local_shape(6).product(), 0);
}

TEST("a hundred thousand processes are placed at once") {
  const auto distribution = Distribution::regular({1000003, 1000003}, 99991);
  check::equal(distribution.grid().product(), 99991);
  check::equal(distribution.owner({1000002, 1000002}), 99990);
}

TEST("an array without elements has no parts") {
  for (const auto& distribution :
       {Distribution::regular({0, 5}, 3), Distribution::block_cyclic({0, 5}, 3, {2, 2}),
        Distribution::irregular({0, 5}, 3, Begins{{0}, {0, 2}})}) {
    check::equal(distribution.local_elements_max(), 0);
    distribution.for_each_part(Box::whole({0, 5}), [](int, const Box&, std::int64_t) {
      throw std::logic_error("a part of nothing");
    });
  }
}

TEST("block-cyclic memory is that of ScaLAPACK") {
  const auto distribution = Distribution::block_cyclic({9, 9}, 4, {2, 2}, Extents{2, 2});
  check::is_true((distribution.local_shape(0) == Extents{5, 5}));  // numroc(9, 2, 0, 0, 2) = 5
  check::is_true((distribution.local_shape(3) == Extents{4, 4}));
  const std::int64_t index[] = {8,
                                4};  // block 4 of rows, 2 of columns: third and second own ones of process 0
  const auto location = distribution.locate(index);
  check::equal(location.process, 0);
  check::equal(location.element, 4 * 5 + 2);
}

TEST("equal distributions are equal, others not, and so are their fingerprints") {
  const auto one = Distribution::block_cyclic({9, 9}, 4, {2, 2}), other = Distribution::regular({9, 9}, 4);
  check::is_true(one == Distribution::block_cyclic({9, 9}, 4, {2, 2}));
  check::is_true(!(one == other));
  check::is_true(one.fingerprint() == Distribution::block_cyclic({9, 9}, 4, {2, 2}).fingerprint());
  check::is_true(one.fingerprint() != other.fingerprint());
  check::is_true(other.fingerprint() != Distribution::regular({9, 8}, 4).fingerprint());
}

TEST("an array without dimensions is refused") {
  check::contains(refusal([] { (void)Distribution::regular({}, 2); }), "at least one dimension");
}

TEST("a negative shape is refused") {
  check::contains(refusal([] { (void)Distribution::regular({4, -1}, 2); }), "[4, -1]");
}

TEST("more elements than 64 bits count are refused") {
  const std::int64_t much = std::int64_t{1} << 40;
  check::contains(refusal([&] { (void)Distribution::regular({much, much}, 2); }), "64 bits");
}

TEST("boundaries that do not rise or lie outside are refused") {
  check::contains(refusal([] { (void)Distribution::irregular({5}, 4, Begins{{0, 3, 3}}); }), "begins at 3");
  check::contains(refusal([] { (void)Distribution::irregular({5}, 4, Begins{{0, 5}}); }), "begins at 5");
  check::contains(refusal([] { (void)Distribution::irregular({5}, 4, Begins{{1}}); }), "begin at 0");
  check::contains(refusal([] { (void)Distribution::irregular({5}, 4, Begins{{0}, {0}}); }), "2 dimensions");
}

TEST("more blocks than processes are refused") {
  check::contains(refusal([] { (void)Distribution::irregular({5, 5}, 3, Begins{{0, 1}, {0, 1}}); }),
                  "processes (3)");
  check::contains(refusal([] { (void)Distribution::block_cyclic({5, 5}, 3, {1, 1}, Extents{2, 2}); }),
                  "grid [2, 2]");
}

TEST("empty blocks are refused") {
  check::contains(refusal([] { (void)Distribution::block_cyclic({5, 5}, 3, {1, 0}); }), "[1, 0]");
}

TEST("an index outside has no owner") {
  const auto distribution = Distribution::regular({3, 2}, 2);
  check::contains(refusal([&] { (void)distribution.owner({3, 0}); }), "outside");
  check::contains(refusal([&] { (void)distribution.owner({0}); }), "outside");
}

TEST("a block-cyclic patch is refused") {
  check::contains(refusal([] { (void)Distribution::block_cyclic({5}, 2, {1}).patch(0); }), "no box");
}

TEST_MAIN

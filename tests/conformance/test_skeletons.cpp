// The skeletons at the end of the headers in extend/ compile, and pass the conformance suite of their kind.
#define OUTCORE_SKELETONS

#include "conformance/engine.hpp"
#include "conformance/messages.hpp"
#include "outcore/extend/codec.hpp"
#include "outcore/extend/transport.hpp"

TEST("the skeleton of a codec gives back what it was given, and refuses what it cannot have made") {
  const outcore::store::SkeletonCodec codec;
  for (const std::size_t zeros : {0, 1, 700, 1000}) {
    std::vector<std::byte> chunk(1000, std::byte{7}), encoded(1000), back(1000, std::byte{1});
    std::fill(chunk.end() - std::ptrdiff_t(zeros), chunk.end(), std::byte{0});
    const std::size_t size = codec.encode(1, 8, chunk, encoded);
    check::equal(size, std::max<std::size_t>(1000 - zeros, 1));
    codec.decode(8, std::span(encoded).first(size), back);
    check::is_true(back == chunk);
    check::equal(codec.encode(1, 8, chunk, std::span(encoded).first(size - 1)), 0U);
    check::throws<outcore::Error>([&] { codec.decode(8, chunk, std::span(back).first(999)); });
  }
}

int main(int argc, char** argv) {
  conformance::add("skeleton", [] { return std::make_unique<outcore::device::SkeletonEngine>(); });
  const auto run = [](int, const conformance::Body& body) {
    outcore::transport::SkeletonTransport transport;
    body(transport);
  };
  conformance::add("skeleton", run, 1);
  conformance::add_messages("skeleton", run, 1);
  return check::run(argc, argv);
}

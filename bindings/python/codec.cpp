// Codecs that are written in Python.
#include "outcore/extend/codec.hpp"

#include <nanobind/nanobind.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "bindings.hpp"
#include "outcore/error.hpp"
#include "string_arg.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace outcore::python {
namespace {

/// Calls methods of an outcore.extend.Codec. Any thread may call it: it waits for the GIL. Exceptions become
/// an Error. outcore.arrays.codecs keeps the codec until the interpreter ends; this object lives longer.
class PythonCodec final : public store::ChunkCodec {
 public:
  PythonCodec(std::string name, nb::handle codec) : name_(std::move(name)), codec_(codec) {}

  [[nodiscard]] std::string name() const override { return name_; }

  [[nodiscard]] std::size_t encode(std::uint8_t /*level*/, std::size_t element_bytes,
                                   std::span<const std::byte> from, std::span<std::byte> to) const override {
    return call("compression", EINVAL, from, [&](const nb::bytes& data) {
      const nb::bytes found = bytes_of(codec_.attr("encode")(data, element_bytes));
      if (found.size() > to.size()) return std::size_t{0};
      std::memcpy(to.data(), found.data(), found.size());
      return found.size();
    });
  }

  void decode(std::size_t element_bytes, std::span<const std::byte> from,
              std::span<std::byte> to) const override {
    call("decompression", EIO, from, [&](const nb::bytes& data) {
      const nb::bytes found = bytes_of(codec_.attr("decode")(data, to.size(), element_bytes));
      if (found.size() != to.size())
        refuse("decompression", EIO,
               std::to_string(found.size()) + " of " + std::to_string(to.size()) + " bytes came out");
      std::memcpy(to.data(), found.data(), found.size());
      return std::size_t{0};
    });
  }

 private:
  [[noreturn]] void refuse(const char* what, int errno_value, const std::string& detail) const {
    throw Error(errno_value, {.attempted = what, .detail = "codec '" + name_ + "': " + detail});
  }

  /// Raises TypeError for an object that is no bytes: bytes(5) would be five zeros.
  static nb::bytes bytes_of(const nb::object& found) {
    const nb::object view = nb::steal(PyMemoryView_FromObject(found.ptr()));
    if (!view) throw nb::python_error();
    return nb::steal<nb::bytes>(PyObject_Bytes(view.ptr()));
  }

  template <class Call>
  std::size_t call(const char* what, int errno_value, std::span<const std::byte> from,
                   const Call& work) const {
    const nb::gil_scoped_acquire locked;
    try {
      return work(nb::bytes(from.data(), from.size()));
    } catch (const nb::python_error& error) {
      refuse(what, errno_value,
             nb::cast<std::string>(error.type().attr("__name__")) + ": " +
                 nb::cast<std::string>(nb::str(error.value())));
    }
  }

  std::string name_;
  nb::handle codec_;
};

}  // namespace

void bind_codec(nb::module_& module) {
  module.def(
      "add_codec",
      [](int number, const std::string& name, nb::handle codec) {
        if (store::codec_named(name) != store::Codec::none)
          throw Error(EEXIST, {.attempted = "add codec '" + name + "'", .detail = "the name is taken"});
        if (number < 0 || number > 255)
          throw Error(EINVAL, {.attempted = "add codec " + std::to_string(number),
                               .detail = "numbers of programs are 128 to 255"});
        store::add_codec(static_cast<store::Codec>(number), std::make_shared<PythonCodec>(name, codec));
      },
      "number"_a, "name"_a, "codec"_a, "See outcore.extend.add_codec.");
}

}  // namespace outcore::python

#include "runtime/base/loaded_libraries.hpp"
#include "runtime/base/exception_message.hpp"
#include <array>
#include <dlfcn.h>
#include <link.h>
namespace mneme {
namespace {

struct known_library {
  const char *name, *file_begins; // prefix, because Python packages ship unrelated copies such as "libz-1a2b.so"
};

// zlib, JPEG, PNG and XZ decode data sets, ICU decodes text, and libm computes outside of tensor operators.
constexpr std::array known_libraries{known_library{"zlib", "libz.so"},    known_library{"JPEG", "libjpeg.so"},
                                     known_library{"PNG", "libpng16.so"}, known_library{"XZ", "liblzma.so"},
                                     known_library{"ICU", "libicuuc.so"}, known_library{"libm", "libm.so"}};

int add_object(dl_phdr_info* object, std::size_t, void* to) {
  const std::filesystem::path path = object->dlpi_name ? object->dlpi_name : "";
  for (const auto& [name, begins] : known_libraries)
    if (path.filename().string().starts_with(begins)) {
      std::error_code failed;
      const auto real = std::filesystem::canonical(path, failed);
      static_cast<std::vector<loaded_library>*>(to)->push_back({name, failed ? path : real});
    }
  return 0;
}

std::filesystem::path own_program() {
  Dl_info library{};
  const auto* const here = reinterpret_cast<const void*>(&own_program);
  const std::filesystem::path file = ::dladdr(here, &library) != 0 && library.dli_fname ? library.dli_fname : "";
  return file.extension() == ".so" ? file.parent_path() / "bin" / "mneme" : "/proc/self/exe";
}

} // namespace

std::vector<loaded_library> loaded_libraries() {
  std::vector<loaded_library> in_order_of_loading;
  ::dl_iterate_phdr(add_object, &in_order_of_loading);
  std::vector<loaded_library> libraries;
  for (const auto& [name, begins] : known_libraries)
    for (const auto& library : in_order_of_loading)
      if (library.name == name)
        libraries.push_back(library);
  return libraries;
}

std::vector<std::pair<std::string, std::string>> library_versions() {
  std::vector<std::pair<std::string, std::string>> versions;
  for (const auto& [name, file] : loaded_libraries()) {
    std::string digits = "unknown"; // stays "unknown" if the file cannot be read
    static_cast<void>(exception_message_of([&] { digits = hex_text(digest_of_file(file)).substr(0, 8); }));
    versions.emplace_back(name, file.filename().string() + ", " + digits);
  }
  return versions;
}

std::string build_digest_of(const std::filesystem::path& program, const std::vector<loaded_library>& libraries) {
  run_digest digest;
  digest.add(digest_of_file(program));
  for (const auto& library : libraries)
    digest.add(digest_of_file(library.file));
  return hex_text(digest.value());
}

const std::string& build_digest() {
  static const std::string digest = [] {
    std::string text = "unknown";
    static_cast<void>(exception_message_of([&] { text = build_digest_of(own_program(), loaded_libraries()); }));
    return text;
  }();
  return digest;
}

} // namespace mneme

#include "runtime/base/loaded_libraries.hpp"
#include "tests/support/scratch.hpp"
#include <catch2/catch_test_macros.hpp>
#include <cmath>
using namespace mneme;
using namespace mneme::test;

TEST_CASE("a build digest depends on the content of the program and of each library") {
  const scratch_folder folder;
  const auto program = folder.path() / "program";
  const std::vector<loaded_library> libraries{{"zlib", folder.path() / "libz.so.1"},
                                              {"JPEG", folder.path() / "libjpeg.so.62"}};
  write_file(program, "one");
  for (const auto& library : libraries)
    write_file(library.file, "two");
  const auto digest = build_digest_of(program, libraries);
  CHECK(digest.size() == 32);
  CHECK(build_digest_of(program, libraries) == digest);
  for (const auto& changed : {program, libraries[0].file, libraries[1].file}) {
    const std::string before = changed == program ? "one" : "two";
    write_file(changed, before + " more");
    CHECK(build_digest_of(program, libraries) != digest);
    write_file(changed, before);
  }
  CHECK(build_digest_of(program, {libraries[0]}) != digest);
  CHECK_THROWS(build_digest_of(folder.path() / "none", libraries));
}

TEST_CASE("library_versions() lists the libraries of this process with files and digests") {
  REQUIRE(std::fma(2.0, 3.0, 1.0) == 7.0); // makes sure that libm is loaded
  const auto libraries = loaded_libraries();
  const auto versions = library_versions();
  REQUIRE(libraries.size() == versions.size());
  bool has_libm = false;
  for (std::size_t i = 0; i < libraries.size(); ++i) {
    const auto& [name, file] = libraries[i];
    CHECK(versions[i].first == name);
    CHECK(versions[i].second == file.filename().string() + ", " + hex_text(digest_of_file(file)).substr(0, 8));
    has_libm = has_libm || (name == "libm" && file.filename().string().starts_with("libm.so"));
  }
  CHECK(has_libm);
  CHECK(build_digest().size() == 32);
}

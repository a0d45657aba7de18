// fuzz_decoders: entry point of libFuzzer for all decoders. tools/fuzz/decoders/run builds it, provides inputs and
// starts it.
//   MNEME_DECODERS=GROUP fuzz_decoders CORPUS...      the first byte of an input selects the decoder of the group
//   MNEME_DECODERS=list fuzz_decoders                 prints "group name" of each decoder, in the order of that byte
#include "tools/fuzz/decoders/decoder.hpp"
#include <ATen/Parallel.h>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string_view>
#include <unistd.h>

namespace mneme::fuzz {
namespace {

std::vector<decoder> all_decoders() {
  std::vector<decoder> all;
  for (auto of_file : {network_decoders(), state_decoders(), text_decoders(), data_decoders(), module_decoders()})
    all.insert(all.end(), std::make_move_iterator(of_file.begin()), std::make_move_iterator(of_file.end()));
  return all;
}

/// Decoders of the group in $MNEME_DECODERS. Ends the process with code 2 if there are none.
std::vector<decoder> asked_for() {
  const char* const named = std::getenv("MNEME_DECODERS");
  const std::string_view group = named ? named : "";
  std::vector<decoder> found;
  for (auto& known : all_decoders()) {
    if (group == "list")
      std::printf("%s %s\n", known.group, known.name);
    if (group == known.group)
      found.push_back(std::move(known));
  }
  if (group == "list" || found.empty()) {
    std::fflush(stdout);
    std::_Exit(group == "list" ? 0 : 2);
  }
  return found;
}

const std::filesystem::path& own_folder() {
  static const std::filesystem::path folder = [] {
    auto made = std::filesystem::temp_directory_path() / ("mneme-decoders-" + std::to_string(::getpid()));
    std::filesystem::create_directory(made);
    return made;
  }();
  return folder;
}

} // namespace

std::filesystem::path file_of(bytes content, const std::string& name) {
  auto path = own_folder() / name;
  std::filesystem::create_directories(path.parent_path());
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(content.data()), static_cast<std::streamsize>(content.size()));
  return path;
}

} // namespace mneme::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto decoders = [] {
    at::set_num_threads(1);
    return mneme::fuzz::asked_for();
  }();
  if (size == 0)
    return 0;
  decoders[data[0] % decoders.size()].read({data + 1, size - 1});
  return 0;
}

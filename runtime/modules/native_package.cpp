#include "runtime/modules/native_package.hpp"
#include <algorithm>
#include <charconv>
#include <cstring>
#include <elf.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <torch/headeronly/version.h>
namespace mneme {
namespace {

using differences = std::vector<std::string>;
using package_notes = std::map<std::string, std::string>; ///< By key; aot_inductor.metadata of PyTorch's.

constexpr std::string_view code_folder = "/data/aotinductor/", library_end = ".wrapper.so",
                           notes_end = ".wrapper_metadata.json";
constexpr std::uint64_t notes_bytes_max = 65'536;
constexpr std::int64_t rows_of_call_max = 4096; // of a call

/// Entries of the package's folder of code whose names end so.
std::vector<const zip_entry*> code_entries(const std::vector<zip_entry>& entries, std::string_view end) {
  std::vector<const zip_entry*> entries_of_code;
  for (const auto& entry : entries)
    if (entry.name.find(code_folder) != std::string::npos && entry.name.ends_with(end))
      entries_of_code.push_back(&entry);
  return entries_of_code;
}

// -- the library ------------------------------------------------------------------------------------------------------

/// Its bits would depend on the machine's threads, and a worker is one thread.
bool has_parallel_loops(const std::string& library) {
  return library.find("GOMP_parallel") != std::string::npos || library.find("__kmpc_fork_call") != std::string::npos;
}

/// True if what shall be mapped of a library lies within its bytes: reading beyond a file's end kills a process.
bool is_whole(const std::string& bytes, const Elf64_Ehdr& header) {
  const auto lies_within = [&](std::uint64_t at, std::uint64_t count) {
    return at <= bytes.size() && count <= bytes.size() - at;
  };
  if (header.e_phentsize != sizeof(Elf64_Phdr) ||
      !lies_within(header.e_phoff, std::uint64_t{header.e_phnum} * sizeof(Elf64_Phdr)))
    return false;
  for (std::uint64_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    std::memcpy(&segment, bytes.data() + header.e_phoff + i * sizeof segment, sizeof segment);
    if (!lies_within(segment.p_offset, segment.p_filesz))
      return false;
  }
  return true;
}

bool is_library_of_this_machine(const std::string& bytes) {
  Elf64_Ehdr header;
  if (bytes.size() < sizeof header || !bytes.starts_with(ELFMAG))
    return false;
  std::memcpy(&header, bytes.data(), sizeof header);
#if defined(__x86_64__)
  constexpr auto machine = EM_X86_64;
#else
  constexpr auto machine = EM_AARCH64;
#endif
  return header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_type == ET_DYN && header.e_machine == machine &&
         is_whole(bytes, header);
}

std::string library_of(std::span<const std::uint8_t> file, const std::vector<zip_entry>& entries, differences& wrong) {
  const auto libraries = code_entries(entries, ".so");
  if (libraries.size() != 1 || !libraries[0]->name.ends_with(library_end)) {
    wrong.push_back(fmt::format("the package holds {} compiled nets; expected one", libraries.size()));
    return {};
  }
  auto library = zip_content(file, *libraries[0]);
  if (!is_library_of_this_machine(library))
    wrong.emplace_back("its library is none that this machine can load, or not whole");
  else if (has_parallel_loops(library))
    wrong.emplace_back("its code runs on several threads; compile it with cpp.threads = 1");
  return library;
}

/// What its code would look for outside of the library.
void check_completeness(const std::vector<zip_entry>& entries, differences& wrong) {
  for (const auto* entry : code_entries(entries, ".json"))
    if (entry->name.ends_with(".wrapper.json"))
      wrong.emplace_back("its code calls operators by name, which only PyTorch's own loader finds; leave them out");
  const auto apart = [](const zip_entry& entry) {
    return entry.name.find("/data/weights/") != std::string::npos || entry.name.ends_with(".blob");
  };
  if (std::any_of(entries.begin(), entries.end(), apart))
    wrong.emplace_back("its weights lie beside its code; compile it with aot_inductor.package_constants_in_so = true");
}

// -- notes ------------------------------------------------------------------------------------------------------------

/// None: there are no notes that can be read.
std::optional<package_notes> notes_of(std::span<const std::uint8_t> file, const std::vector<zip_entry>& entries) {
  const auto code = code_entries(entries, notes_end);
  if (code.size() != 1 || code[0]->bytes > notes_bytes_max)
    return std::nullopt;
  const auto content = nlohmann::json::parse(zip_content(file, *code[0]), nullptr, false);
  if (!content.is_object())
    return std::nullopt;
  package_notes notes;
  for (const auto& [key, value] : content.items())
    notes[key] = value.is_string() ? value.get<std::string>() : "no text";
  return notes;
}

/// "1,3,10,10"; empty: it is no list of numbers above 0.
std::vector<std::int64_t> numbers_of(std::string_view text) {
  std::vector<std::int64_t> numbers;
  for (const auto* at = text.data(); at <= text.data() + text.size(); ++at) {
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(at, text.data() + text.size(), number);
    if (error != std::errc{} || number < 1 || (end != text.data() + text.size() && *end != ','))
      return {};
    numbers.push_back(number);
    at = end;
  }
  return numbers;
}

/// True if this processor runs code that g++ has made by -march=NAME.
bool runs_code_for(std::string_view name) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool third = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
                     __builtin_cpu_supports("bmi2");
  const bool fourth = third && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512vl");
  return name == "x86-64" || (name == "x86-64-v3" && third) || (name == "x86-64-v4" && fourth);
#else
  return name == "armv8-a";
#endif
}

/// The notes that a run needs, compared with what it needs.
class note_check {
public:
  note_check(const package_notes& notes, differences& wrong) : notes_(notes), wrong_(wrong) {}

  std::int64_t rows(std::array<std::int64_t, 3> input) {
    same("AOTI_DEVICE_KEY", "cpu", "the device of its code");
    same("mneme.threads", "1", "the number of threads of its code");
    same("mneme.dtype", "float32", "the type of the rows that forward takes");
    const auto version = value_of("mneme.torch");
    if (version && version->substr(0, version->find('+')) != TORCH_VERSION)
      wrong_.push_back(fmt::format("PyTorch {} has compiled it; expected {}, whose functions its code calls", *version,
                                   TORCH_VERSION));
    const auto processors = value_of("mneme.march");
    if (processors && !runs_code_for(*processors))
      wrong_.push_back(fmt::format("its code is for processors of {}, which this one is not, or may not be; expected "
                                   "x86-64-v3 or, where there is AVX-512, x86-64-v4",
                                   *processors));
    const auto count = rows_of_call(input);
    if (!missing_.empty())
      wrong_.push_back(
          fmt::format("the package does not say {}; tools/research/export/modules.py makes packages that do, and "
                      "docs/modules.md lists what they say",
                      fmt::join(missing_, ", ")));
    return count;
  }

private:
  std::optional<std::string> value_of(const std::string& key) {
    const auto note = notes_.find(key);
    if (note != notes_.end())
      return note->second;
    missing_.push_back(key);
    return std::nullopt;
  }

  void same(const std::string& key, std::string_view expected, std::string_view meaning) {
    const auto text = value_of(key);
    if (text && *text != expected)
      wrong_.push_back(fmt::format("{} is {}; expected {}", meaning, *text, expected));
  }

  std::int64_t rows_of_call(std::array<std::int64_t, 3> input) {
    const auto text = value_of("mneme.rows");
    if (!text)
      return 0;
    const auto shape = numbers_of(*text);
    if (shape.size() == 4 && std::equal(input.begin(), input.end(), shape.begin() + 1) && shape[0] <= rows_of_call_max)
      return shape[0];
    wrong_.push_back(fmt::format("forward takes rows of shape [{}]; expected [B, {}] with B from 1 to {}", *text,
                                 fmt::join(input, ", "), rows_of_call_max));
    return 0;
  }

  const package_notes& notes_;
  differences& wrong_;
  std::vector<std::string> missing_;
};

} // namespace

bool holds_native_code(const std::vector<zip_entry>& entries) {
  return std::any_of(entries.begin(), entries.end(),
                     [](const zip_entry& entry) { return entry.name.find(code_folder) != std::string::npos; });
}

tl::expected<native_package, std::vector<std::string>> read_package(std::span<const std::uint8_t> file,
                                                                    const std::vector<zip_entry>& entries,
                                                                    std::array<std::int64_t, 3> input) {
  differences wrong;
  native_package package{.library = library_of(file, entries, wrong)};
  check_completeness(entries, wrong);
  if (const auto notes = notes_of(file, entries))
    package.rows_of_call = note_check(*notes, wrong).rows(input);
  else
    wrong.emplace_back("the package has no notes about its code that can be read");
  if (!wrong.empty())
    return tl::unexpected(std::move(wrong));
  return package;
}

} // namespace mneme

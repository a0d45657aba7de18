#include "runtime/data/data_sources.hpp"
#include "runtime/base/check.hpp"
#include "runtime/base/digest.hpp"
#include "runtime/base/registry.hpp"
#include "runtime/data/image_tree.hpp"
#include "runtime/data/large_pages.hpp"
#include "runtime/data/splits.hpp"
#include "runtime/formats/array_file.hpp"
#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sstream>
namespace mneme {

source_registration::source_registration(data_source source) { registered<data_source>().push_back(std::move(source)); }

std::vector<data_source> data_sources() { return sort_by_name<data_source>(); }

data_source data_source_named(const std::string& name) {
  for (auto& source : data_sources())
    if (source.name == name)
      return source;
  return {};
}

std::vector<std::filesystem::path> data_roots(const data_section& data) {
  if (!data.root.empty())
    return {data.root};
  std::vector<std::filesystem::path> roots;
  const char* listed = std::getenv("MNEME_DATA");
  std::istringstream entries(listed ? listed : "");
  for (std::string entry; std::getline(entries, entry, ':');)
    if (!entry.empty())
      roots.emplace_back(entry);
  roots.insert(roots.end(), {"/usr/local/share/datasets", "/usr/share/datasets"});
  return roots;
}

expected<std::vector<std::filesystem::path>> folders_of(const data_source& source, const data_section& data) {
  std::vector<std::filesystem::path> folders;
  if (source.files) {
    const auto files = find_files(*source.files, data, data_roots(data));
    if (!files)
      return tl::unexpected(files.error());
    folders.push_back(files->front().parent_path());
  }
  for (const auto& part : data_sources()) {
    if (std::find(source.parts.begin(), source.parts.end(), part.name) == source.parts.end())
      continue;
    const auto of_part = folders_of(part, data);
    if (!of_part)
      return of_part;
    folders.insert(folders.end(), of_part->begin(), of_part->end());
  }
  return folders;
}

std::string user_data_digest(const data_section& data) {
  const auto source = data_source_named(data.name);
  if (!source.is_own)
    return {};
  if (!source.own_file)
    return hex_text(names_and_sizes(data, data_roots(data)));
  run_digest digest;
  std::error_code ignored;
  for (const auto& file : array_files(data.file, array_names()))
    if (std::filesystem::is_regular_file(file, ignored))
      digest.add(digest_of_file(file.string()));
  return hex_text(digest.value());
}

expected<raw_data> load_data(const data_section& data, std::uint64_t seed, row_values values) {
  const auto sources = data_sources();
  const auto source = std::find_if(sources.begin(), sources.end(), [&](const auto& s) { return s.name == data.name; });
  if (source == sources.end()) {
    std::vector<std::string> names;
    for (const auto& known : sources)
      names.push_back(known.name);
    const auto meant = closest_match(data.name, names);
    return failed("data.name",
                  fmt::format("unknown data set '{}'; expected one of {}{}", data.name, fmt::join(names, ", "),
                              meant.empty() ? "" : "; did you mean " + meant + "?"));
  }
  auto loaded = values == row_values::zeros && source->load_zeros ? source->load_zeros(data)
                                                                  : source->load(data, data_roots(data), seed);
  if (!loaded)
    return loaded;
  loaded->train = limited(std::move(loaded->train), train_limits(data), loaded->classes);
  loaded->test = limited(std::move(loaded->test), test_limits(data), loaded->classes);
  advise_huge_pages(loaded->train.images); // done once, before other processes share the memory
  advise_huge_pages(loaded->test.images);
  const auto channels = static_cast<std::size_t>(loaded->train.images.size(1));
  MNEME_CHECK(loaded->mean.size() == channels && loaded->deviation.size() == channels, data.name, channels);
  return loaded;
}

diagnostics data_warnings(const data_section& data) {
  const auto source = data_source_named(data.name);
  return source.find_warnings ? source.find_warnings(data, data_roots(data)) : diagnostics{};
}

} // namespace mneme

#include "tools/cli/own_data.hpp"
#include <algorithm>
namespace mneme {
namespace {

constexpr double usual_test_share = 0.2;

std::optional<data_section> section_for(const std::filesystem::path& path) {
  std::error_code ignored;
  data_section section;
  const auto place = std::filesystem::absolute(path, ignored);
  const auto ending = path.extension();
  if (std::filesystem::is_directory(path, ignored)) {
    const bool has_arrays = std::filesystem::exists(path / "train_x.npy", ignored);
    section.name = has_arrays ? "arrays" : "folder";
    (has_arrays ? section.file : section.root) = place;
    section.side = 0;
    return section;
  }
  if (!std::filesystem::is_regular_file(path, ignored))
    return std::nullopt;
  section.file = place;
  section.name = ending == ".csv" ? "csv" : "arrays";
  if (ending == ".csv" || ending == ".npz" || ending == ".npy" || ending == ".safetensors")
    return section;
  return std::nullopt;
}

} // namespace

std::optional<own_data_look> look_at_own_data(const std::filesystem::path& path) {
  const auto section = section_for(path);
  if (!section)
    return std::nullopt;
  own_data_look look{.section = *section, .rows = load_data(*section, 1)};
  const auto lacks_test = [](const diagnostic& finding) { return finding.text.starts_with("has no test part"); };
  if (look.rows || !std::all_of(look.rows.error().begin(), look.rows.error().end(), lacks_test))
    return look;
  look.has_no_test_part = true;
  look.section.test_share = usual_test_share;
  look.rows = load_data(look.section, 1);
  return look;
}

} // namespace mneme

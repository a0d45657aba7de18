#include "strategies/osi_fl/diffusion_files.hpp"
#include <algorithm>
#include <fmt/format.h>
namespace mneme {
namespace {

/// A function-local static, because registrations run before main(). Empty if the optional part is not linked.
diffusion_support& registered_support() {
  static diffusion_support support;
  return support;
}

} // namespace

void diffusion_files::keys(key_table& table) {
  for (auto& key : files_)
    table.path(key.name, key.file, key.meaning);
  table.integer("beams", beams_, {.low = 1, .high = 1'000}, "Beam width of the caption search.");
}

bool diffusion_files::describes() const {
  return std::any_of(files_.begin(), files_.end(),
                     [](const file_key& key) { return !key.of_diffusion && !key.file.empty(); });
}

void diffusion_files::add_to(method_needs& needs) const {
  for (const auto& key : files_)
    if (!key.file.empty() && key.module)
      needs.module_files[key.name] = {.file = key.file, .own_rows = true};
    else if (!key.file.empty())
      needs.text_files[key.name] = key.file;
}

diagnostics diffusion_files::check_keys(bool generates) const {
  diagnostics errors;
  for (const auto& key : files_) {
    const bool read = generates || !key.of_diffusion;
    if (read && key.file.empty())
      errors.push_back(
          {std::string("strategy.") + key.name,
           fmt::format("no {}; expected a file that tools/research/export/picture_parts.py has written", key.name)});
    else if (!read && !key.file.empty())
      errors.push_back({std::string("strategy.") + key.name,
                        "no effect with condition = \"embed512\", whose generator is trained in the run; expected no "
                        "file, or condition = \"sd77x768\""});
  }
  return errors;
}

diagnostics diffusion_files::check(const method_setup& setup, const condition_shape& condition, bool generates) const {
  if (auto errors = check_keys(generates); !errors.empty())
    return errors;
  const auto& support = registered_support();
  if (support.check == nullptr)
    return {{"strategy.caption_encoder", "this build has no captioner and no Stable Diffusion; build with "
                                         "MNEME_DIFFUSION=ON, or remove the files of modules"}};
  method_needs needs;
  add_to(needs);
  return support.check(setup, {.texts = needs.text_files, .condition = condition, .beams = beams_}, generates);
}

part_programs diffusion_files::build(const method_setup& setup, const diffusion_sampling& sampling) const {
  return registered_support().build(setup, beams_, sampling);
}

diffusion_registration::diffusion_registration(const diffusion_support& support) noexcept {
  registered_support() = support;
}

} // namespace mneme

#include "actors/run/run_data.hpp"
#include "actors/run/backbone_training.hpp"
#include "actors/run/memory_estimate.hpp"
namespace mneme {
namespace {

/// Returns an error for each setting that moves pixels, because these rows have none. For generated rows the scenario's
/// own checks report these errors earlier. @param kind kind of the rows: "tokens" or "numbers"
diagnostics validate_pixel_use(const scenario& settings, const std::string& kind) {
  diagnostics errors;
  if (settings.training.augment != augmentation_kind::none)
    errors.push_back({settings.where("training.augment"),
                      "the data are rows of " + kind + ", but augmentation moves pixels; expected \"none\""});
  const auto transform = settings.tasks.transform;
  if (settings.tasks.kind == task_kind::domain_incremental &&
      (transform == task_transform::permute || transform == task_transform::affine))
    errors.push_back(
        {settings.where("tasks.transform"),
         "the data are rows of " + kind + ", but other transforms move pixels; expected \"class-blocks\""});
  return errors;
}

/// Replaces keys and names of data sets in errors with locations in the scenario. Keeps locations in files.
diagnostics placed_in_scenario(diagnostics errors, const scenario& settings) {
  for (auto& [where, text] : errors) {
    const bool is_key = where.starts_with("data.");
    if (!is_key && !where.starts_with("data set '"))
      continue;
    text = where + (is_key ? " " : ": ") + text;
    where = settings.where(settings.key_places.contains(where) ? where : "data.name");
  }
  return errors;
}

} // namespace

expected<raw_data> load_run_data(const scenario& settings, const raw_data* given, row_values values,
                                 const tl::expected<std::string, std::string>& device) {
  diagnostics problems;
  if (!device)
    problems.push_back({settings.where("worker.device"), device.error()});
  if (const auto crowd = check_client_memory(settings, available_memory()); !crowd.empty()) {
    append(problems, crowd); // stop before anything is loaded
    return tl::unexpected{problems};
  }
  auto raw = given ? expected<raw_data>(*given) : load_data(settings.data, settings.data_seed(), values);
  if (!raw)
    append(problems, placed_in_scenario(raw.error(), settings));
  if (!problems.empty())
    return tl::unexpected{problems};
  problems = validate_backbone(settings, *raw);
  if (raw->train.images.scalar_type() != at::kByte)
    append(problems, validate_pixel_use(settings, raw->tokens > 0 ? "tokens" : "numbers"));
  if (!problems.empty())
    return tl::unexpected{problems};
  return raw;
}

} // namespace mneme

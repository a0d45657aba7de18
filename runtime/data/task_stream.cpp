#include "runtime/data/task_stream.hpp"
#include "runtime/base/check.hpp"
#include "runtime/data/pixel_constants.hpp"
#include "runtime/data/public_rows.hpp"
#include "runtime/data/task_definition.hpp"
#include "runtime/data/transforms.hpp"
#include <algorithm>
#include <fmt/format.h>
#include <utility>
namespace mneme {
namespace {

/// For each row, the position of its class in the class order; -1 if the run does not use the class.
std::vector<std::int32_t> positions(const image_table& table, const std::vector<std::int32_t>& position_of) {
  std::vector<std::int32_t> labels(table.labels.size());
  std::transform(table.labels.begin(), table.labels.end(), labels.begin(), [&](std::int32_t label) {
    MNEME_CHECK(label >= 0 && label < std::ssize(position_of), label);
    return position_of[static_cast<std::size_t>(label)];
  });
  return labels;
}

/// Rows of a split that belong to a task, ascending.
std::vector<std::int64_t> rows_of(const task_definition& plan, const std::vector<std::int32_t>& position,
                                  const std::vector<std::int32_t>& domains) {
  const std::int64_t before = plan.transform * std::ssize(position);
  std::vector<std::int64_t> rows;
  for (std::size_t row = 0; row < position.size(); ++row)
    if (position[row] >= plan.positions.low && position[row] < plan.positions.high &&
        (plan.domain < 0 || domains.empty() || domains[row] == plan.domain))
      rows.push_back(before + static_cast<std::int64_t>(row));
  return rows;
}

/// Makes a split with the labels of the run. A label is a position in the class order, modulo the number of labels,
/// `block`.
dataset relabeled(image_table table, const std::vector<std::int32_t>& position, std::int64_t block) {
  dataset part;
  if (table.images.scalar_type() == at::kInt)
    part.vectors = table.images.flatten(1).to(at::kFloat); // exact, because tokens are below 2^24
  else if (table.images.scalar_type() == at::kFloat) {
    part.vectors = table.images.flatten(1);
    part.vector_shape = {table.images.size(1), table.images.size(2), table.images.size(3)};
  } else
    part.images = std::move(table.images);
  part.file_rows = std::move(table.file_rows);
  part.labels.resize(position.size());
  std::transform(position.begin(), position.end(), part.labels.begin(),
                 [&](std::int32_t at) { return at < 0 ? -1 : at % static_cast<std::int32_t>(block); });
  return part;
}

/// Normalizes numeric rows of both splits in place if the scenario requests it. The constants are measured on the
/// training rows.
void normalize_numbers(normalization kind, raw_data& data) {
  if (kind == normalization::mean_std || data.train.images.scalar_type() != at::kFloat)
    return;
  const auto by = kind == normalization::unit ? unit_range(data.train.images) : measure_numbers(data.train.images);
  for (auto* table : {&data.train, &data.test})
    table->images = standardized(table->images, by);
}

/// Mean and deviation of the training rows, which are applied to the pixels of both splits. Tokens have none.
pixel_constants constants_for(normalization kind, const raw_data& data, const dataset& train) {
  const auto channels = static_cast<std::size_t>(train.shape()[0]);
  if (kind == normalization::measured && train.images.defined())
    return measure_constants(train.images);
  if (kind != normalization::mean_std)
    return {.mean = std::vector<double>(channels, 0.0), .deviation = std::vector<double>(channels, 1.0)};
  MNEME_CHECK(data.mean.size() == channels && data.deviation.size() == channels, data.name, channels, data.mean.size(),
              data.deviation.size());
  return {.mean = data.mean, .deviation = data.deviation};
}

/// Sets scale and shift of each channel, so that v * scale + shift equals (v / 255 - mean) / deviation.
void set_normalization(dataset& split, const pixel_constants& by) {
  for (std::size_t c = 0; c < by.mean.size(); ++c) {
    split.scale.push_back(static_cast<float>(1.0 / (255.0 * by.deviation[c])));
    split.shift.push_back(static_cast<float>(-by.mean[c] / by.deviation[c]));
  }
}

/// Image size after resizing and cropping, if the scenario sets one. Fails if the images are too small.
expected<resize_spec> shown_size_for(const scenario& from, const dataset& train) {
  const resize_spec shown{.resize = from.data.resize, .crop = from.data.crop};
  if (!shown.changes())
    return shown;
  if (!train.images.defined())
    return failed(from.where(shown.resize > 0 ? "data.resize" : "data.crop"),
                  "rows of tokens or numbers have no size; expected data.resize = 0 and data.crop = 0");
  const auto [channels, height, width] = train.stored_shape();
  const auto [lines, pixels] = shown.resized(height, width);
  if (shown.crop > std::min(lines, pixels))
    return failed(from.where("data.crop"),
                  fmt::format("data.crop = {}: the images have {} x {} pixels; expected at most {}, or a larger "
                              "data.resize",
                              shown.crop, lines, pixels, std::min(lines, pixels)));
  if (lines > 4096 || pixels > 4096)
    return failed(from.where("data.resize"), fmt::format("data.resize = {}: images of {} x {} pixels become {} x {}; "
                                                         "expected at most 4096 pixels a side",
                                                         shown.resize, height, width, lines, pixels));
  return shown;
}

std::vector<std::string> names_of_labels(const std::vector<std::int64_t>& order, const raw_data& data,
                                         std::int64_t used) {
  std::vector<std::string> names;
  for (std::int64_t label = 0; label < used; ++label) {
    const auto of_file = static_cast<std::size_t>(order[static_cast<std::size_t>(label)]);
    names.push_back(of_file < data.class_names.size() ? data.class_names[of_file] : std::to_string(of_file));
  }
  return names;
}

/// Reports tasks without training or test rows.
diagnostics empty_tasks(const scenario& from, const task_stream& stream) {
  diagnostics problems;
  for (std::size_t t = 0; t < stream.tasks.size(); ++t)
    for (const bool train : {true, false})
      if ((train ? stream.tasks[t].train : stream.tasks[t].test).empty()) {
        const std::string split = train ? "train" : "test";
        const bool limited = (train ? from.data.train_rows : from.data.test_rows) > 0;
        const bool made_up = from.data.name == "synthetic" && !limited;
        problems.push_back({from.where(made_up ? "data.rows" : "data." + split + "_rows"),
                            "task " + std::to_string(t + 1) + " has no " + split + " rows; expected some: raise data." +
                                (made_up ? "rows" : split + "_rows or set it to 0 (all)")});
      }
  return problems;
}

} // namespace

class_range task_stream::seen_classes(task_id t) const {
  MNEME_CHECK(t.value < tasks.size(), t.value, tasks.size());
  class_range classes;
  for (std::size_t task = 0; task <= t.value; ++task)
    classes.high = std::max(classes.high, tasks[task].classes.high);
  return classes;
}

expected<std::vector<std::int64_t>> classes_used(const scenario& from, const raw_data& data) {
  auto order = class_order(from, data.classes);
  if (!order)
    return order;
  const auto plan = plan_tasks(from, data);
  if (!plan)
    return tl::unexpected(plan.error());
  order->resize(static_cast<std::size_t>(plan->back().positions.high));
  std::sort(order->begin(), order->end());
  return order;
}

expected<task_stream> make_task_stream(const scenario& from, raw_data data) {
  const auto order = class_order(from, data.classes);
  if (!order)
    return tl::unexpected(order.error());
  const auto plan = plan_tasks(from, data);
  if (!plan)
    return tl::unexpected(plan.error());

  const std::int64_t used = plan->back().positions.high;
  std::vector<std::int32_t> position_of(order->size(), -1); // indexed by class of the file
  for (std::int32_t at = 0; at < used; ++at)
    position_of[static_cast<std::size_t>((*order)[static_cast<std::size_t>(at)])] = at;
  const auto train_at = positions(data.train, position_of), test_at = positions(data.test, position_of);

  task_stream stream;
  stream.classes = plan->back().labels.high;
  stream.tokens = data.tokens;
  stream.drawn_rows = std::move(data.drawn_rows);
  if (stream.classes == used)
    stream.class_names = names_of_labels(*order, data, used);
  for (const auto& planned : *plan)
    stream.tasks.push_back(
        {planned.labels, rows_of(planned, train_at, data.train.domains), rows_of(planned, test_at, data.test.domains)});
  if (auto empty = empty_tasks(from, stream); !empty.empty())
    return tl::unexpected(std::move(empty));

  normalize_numbers(from.data.normalize, data);
  const bool holds_numbers = data.train.images.scalar_type() == at::kFloat;
  auto train = relabeled(std::move(data.train), train_at, stream.classes);
  auto test = relabeled(std::move(data.test), test_at, stream.classes);
  const bool transformed = plan->back().transform > 0;
  train.transforms = transformed
                         ? task_transforms(from.tasks.transform, from.tasks.count, train.shape(), from.data_seed())
                         : std::vector<pixel_map>(1);
  test.transforms = train.transforms;
  const auto shown = shown_size_for(from, train);
  if (!shown)
    return tl::unexpected(shown.error());
  const auto constants = constants_for(from.data.normalize, data, train);
  for (auto* split : {&train, &test}) {
    split->shown = *shown;
    if (!holds_numbers)
      set_normalization(*split, constants);
  }
  hold_out_public_rows(from, train, stream.tasks);
  stream.train = std::make_shared<const dataset>(std::move(train));
  stream.test = std::make_shared<const dataset>(std::move(test));
  return stream;
}

} // namespace mneme

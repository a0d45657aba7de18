#include "strategies/baselines/dytox/convit.hpp"
#include "runtime/base/check.hpp"
#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>
#include <algorithm>
#include <cmath>
#include <sstream>
namespace mneme {

namespace {

constexpr std::int64_t convit_mlp_ratio = 4;
constexpr double convit_deviation = 0.02; // standard deviation of initial weights

/// Initial positional weights. With k = floor(sqrt(H)), each of the first k^2 heads attends to one cell of a k x k grid
/// around a patch. Returns [k^2, 3].
std::vector<float> local_directions(std::int64_t heads) {
  const auto side = static_cast<std::int64_t>(std::sqrt(static_cast<double>(heads)));
  const float center = static_cast<float>(side - 1) / 2.0F; // center of the grid; lies between cells if k is even
  std::vector<float> directions;
  for (std::int64_t column = 0; column < side; ++column)
    for (std::int64_t row = 0; row < side; ++row) {
      directions.push_back(2.0F * (static_cast<float>(column) - center));
      directions.push_back(2.0F * (static_cast<float>(row) - center));
      directions.push_back(-1.0F);
    }
  return directions;
}

/// Returns the offsets between all pairs of patches, (dx, dy, dx^2 + dy^2): [N, N, 3].
at::Tensor places_of(std::int64_t rows, std::int64_t columns) {
  const auto patches = rows * columns;
  auto places = at::empty({patches, patches, 3}, at::kFloat);
  auto* to = places.mutable_data_ptr<float>();
  for (std::int64_t from = 0; from < patches; ++from)
    for (std::int64_t other = 0; other < patches; ++other) {
      const auto dx = other % columns - from % columns, dy = other / columns - from / columns;
      for (const auto value : {dx, dy, dx * dx + dy * dy})
        *to++ = static_cast<float>(value);
    }
  return places;
}

std::int64_t largest_task(const std::vector<class_range>& tasks) {
  std::int64_t largest = 0;
  for (const auto& task : tasks)
    largest = std::max(largest, task.size());
  return largest;
}

} // namespace

// -- parameters -------------------------------------------------------------------------------------------------------

convit::convit(convit_shape shape) : shape_(std::move(shape)) {
  const auto [channels, height, width] = shape_.input;
  MNEME_CHECK(height % shape_.patch == 0 && width % shape_.patch == 0, height, width, shape_.patch);
  MNEME_CHECK(shape_.width % shape_.heads == 0 && !shape_.tasks.empty(), shape_.width, shape_.heads);
  rows_ = height / shape_.patch;
  columns_ = width / shape_.patch;
  const auto d = shape_.width, patch_floats = channels * shape_.patch * shape_.patch;
  const auto bound = 1.0 / std::sqrt(static_cast<double>(patch_floats));
  add_parameter(
      {.name = "patch_embed.proj.weight", .shape = {d, channels, shape_.patch, shape_.patch}, .bound = bound});
  add_parameter({.name = "patch_embed.proj.bias", .shape = {d}, .bound = bound});
  add_parameter({.name = "pos_embed", .shape = {rows_ * columns_, d}, .deviation = convit_deviation});
  for (std::int64_t i = 0; i < shape_.depth; ++i)
    add_encoder_block("blocks." + std::to_string(i));
  add_decoder(decoder_layer());
  add_tasks();
  places_ = places_of(rows_, columns_);
}

void convit::add_linear(const std::string& name, std::int64_t in, std::int64_t out, bool biased) {
  add_parameter({.name = name + ".weight", .shape = {out, in}, .deviation = convit_deviation});
  if (biased)
    add_parameter({.name = name + ".bias", .shape = {out}});
}

void convit::add_norm(const std::string& name) {
  add_parameter({.name = name + ".weight", .shape = {shape_.width}, .constant = 1.0});
  add_parameter({.name = name + ".bias", .shape = {shape_.width}});
}

void convit::add_mlp(const std::string& name) {
  add_norm(name + ".norm2");
  add_linear(name + ".mlp.fc1", shape_.width, convit_mlp_ratio * shape_.width, true);
  add_linear(name + ".mlp.fc2", convit_mlp_ratio * shape_.width, shape_.width, true);
}

/// Adds the parameters in the order in which convit_passes.cpp reads them. Value projections are initially the
/// identity.
void convit::add_encoder_block(const std::string& name) {
  const auto d = shape_.width, heads = shape_.heads;
  std::vector<float> identity_matrix(static_cast<std::size_t>(d * d), 0.0F);
  for (std::int64_t i = 0; i < d; ++i)
    identity_matrix[static_cast<std::size_t>(i * (d + 1))] = 1.0F;
  add_norm(name + ".norm1");
  blocks_.push_back(layout().size() - 2);
  add_linear(name + ".attn.qk", d, 2 * d, false);
  add_parameter({.name = name + ".attn.v.weight", .shape = {d, d}, .leading = std::move(identity_matrix)});
  add_linear(name + ".attn.proj", d, d, true);
  add_parameter({.name = name + ".attn.pos_proj.weight",
                 .shape = {heads, 3},
                 .deviation = convit_deviation,
                 .leading = local_directions(heads)});
  add_parameter({.name = name + ".attn.pos_proj.bias", .shape = {heads}});
  add_parameter({.name = name + ".attn.gating_param", .shape = {heads}, .constant = 1.0});
  add_mlp(name);
}

void convit::add_decoder(const std::string& name) {
  add_norm(name + ".norm1");
  decoder_ = layout().size() - 2;
  for (const auto* const part : {".attn.q", ".attn.k", ".attn.v"})
    add_linear(name + part, shape_.width, shape_.width, false);
  add_linear(name + ".attn.proj", shape_.width, shape_.width, true);
  add_mlp(name);
}

/// Heads are initialized like PyTorch's linear layers.
void convit::add_tasks() {
  const auto d = shape_.width;
  const auto bound = 1.0 / std::sqrt(static_cast<double>(d));
  tokens_ = layout().size();
  for (std::int64_t k = 0; k < tasks(); ++k)
    add_parameter({.name = task_layers(k)[0] + ".token", .shape = {d}, .deviation = convit_deviation});
  norms_ = layout().size();
  for (std::int64_t k = 0; k < tasks(); ++k)
    add_norm(task_layers(k)[1]);
  if (shape_.divergence) {
    const auto outputs = largest_task(shape_.tasks) + 1;
    divergence_ = layout().size();
    add_norm(divergence_layer() + ".norm");
    add_parameter({.name = divergence_layer() + ".linear.weight", .shape = {outputs, d}, .bound = bound});
    add_parameter({.name = divergence_layer() + ".linear.bias", .shape = {outputs}, .bound = bound});
  }
  head_ = add_parameter({.name = head_layer() + ".weight", .shape = {classes(), d}, .head = true, .bound = bound});
  add_parameter({.name = head_layer() + ".bias", .shape = {classes()}, .head = true, .bound = bound});
}

// -- description ------------------------------------------------------------------------------------------------------

std::string convit::identity() const {
  std::ostringstream text;
  text << "convit " << shape_.input[0] << "x" << shape_.input[1] << "x" << shape_.input[2] << " patch " << shape_.patch
       << " width " << shape_.width << " depth " << shape_.depth << " heads " << shape_.heads << " tasks";
  for (const auto& task : shape_.tasks)
    text << " " << task.size();
  if (shape_.drop_path > 0.0)
    text << " drop " << std::hexfloat << shape_.drop_path;
  if (shape_.divergence)
    text << " divergence";
  if (!shape_.gated)
    text << " without gate";
  return text.str();
}

std::vector<std::string> convit::maps() const {
  return shape_.divergence ? std::vector<std::string>{divergence_layer()} : std::vector<std::string>{};
}

std::shared_ptr<const model> convit::with_frozen(const std::vector<bool>& chosen) const {
  auto copy = std::make_shared<convit>(*this);
  copy->hold(chosen);
  return copy;
}

std::vector<std::string> convit::encoder_layers() { return {"patch_embed", "pos_embed", "blocks"}; }

std::string convit::decoder_layer() { return "decoder"; }

std::vector<std::string> convit::task_layers(std::int64_t task) {
  return {"task_tokens." + std::to_string(task), "head_norms." + std::to_string(task)};
}

std::string convit::head_layer() { return "head"; }

std::string convit::divergence_layer() { return "divergence"; }

at::Tensor convit::token_of(const at::Tensor& flat, std::int64_t task) const {
  return as_in_files(flat, layout()[tokens_ + static_cast<std::size_t>(task)]);
}

std::int64_t convit::row_floats() const {
  const auto patches = rows_ * columns_, d = shape_.width;
  const auto block = patches * (16 * d + 4 * shape_.heads * patches);
  return shape_.input[0] * shape_.input[1] * shape_.input[2] + shape_.depth * block + (3 * patches + 16 * tasks()) * d;
}

/// Returns the smallest range of tasks that contains all tasks with classes in `classes`. Returns all tasks if
/// `classes` is empty.
class_range convit::tasks_of(class_range classes) const {
  if (classes.size() == 0)
    return {0, tasks()};
  class_range range{tasks(), 0};
  for (std::int64_t k = 0; k < tasks(); ++k) {
    const auto& own = shape_.tasks[static_cast<std::size_t>(k)];
    if (own.low < classes.high && classes.low < own.high)
      range = {std::min(range.low, k), k + 1};
  }
  return range;
}

// -- model kind -------------------------------------------------------------------------------------------------------

void convit_kind::keys(key_table& table) {
  table.integer("patch", shape_.patch, {.low = 1, .high = 4096}, "Side length of a patch in pixels.");
  table.integer("width", shape_.width, {.low = 1, .high = 65'536}, "Width of a token's vector.");
  table.integer("depth", shape_.depth, {.low = 1, .high = 100},
                "Number of self-attention blocks before the block of class attention.");
  table.integer("heads", shape_.heads, {.low = 1, .high = 1024}, "Number of attention heads; must divide the width.");
  table.number("drop_path", shape_.drop_path, {.low = 0.0, .high = 0.99},
               "Stochastic depth: probability of skipping a branch of the last block in training; it grows linearly "
               "from 0 at the first.");
  table.flag("gated", shape_.gated, "Gated positional self-attention of patches; false: plain self-attention.");
}

tl::expected<model_ref, std::string> convit_kind::build_with(std::array<std::int64_t, 3> shape, std::int64_t classes,
                                                             bool divergence) const {
  const auto patch = shape_.patch;
  if (shape[1] % patch != 0 || shape[2] % patch != 0)
    return tl::unexpected("convit cannot cut images of " + std::to_string(shape[1]) + " x " + std::to_string(shape[2]) +
                          " pixels into patches of " + std::to_string(patch) + "; model.patch must divide both");
  if (shape_.width % shape_.heads != 0)
    return tl::unexpected("convit cannot split a width of " + std::to_string(shape_.width) + " evenly over " +
                          std::to_string(shape_.heads) + " heads; model.heads must divide model.width");
  if (head().kind != head_kind::linear)
    return tl::unexpected<std::string>("convit ends with a linear head for each task, but the method reads a single "
                                       "head; expected a net with one head");
  auto whole = shape_;
  whole.input = shape;
  whole.tasks = ranges(classes);
  whole.divergence = divergence;
  return std::make_shared<convit>(std::move(whole));
}

/// Returns the class ranges of the tasks if they are adjacent; otherwise one range of all classes. Outputs after the
/// last class belong to the last task.
std::vector<class_range> convit_kind::ranges(std::int64_t classes) const {
  auto side_by_side = tasks();
  std::int64_t next = 0;
  for (const auto& task : side_by_side) {
    if (task.low != next || task.size() == 0)
      return {{0, classes}};
    next = task.high;
  }
  if (side_by_side.empty() || next > classes)
    return {{0, classes}};
  side_by_side.back().high = classes;
  return side_by_side;
}

namespace {

const model_registration convit_line{
    {.name = "convit",
     .summary = "transformer with gated positional attention, and a token and a head for each task (ConViT, DyTox)",
     .make = []() -> std::unique_ptr<model_kind> { return std::make_unique<convit_kind>(); }}};

} // namespace
} // namespace mneme

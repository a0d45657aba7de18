#include "strategies/shared/split_learning.hpp"
#include "runtime/models/chained_model.hpp"
#include "runtime/models/intermediate_model.hpp"
#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
namespace mneme {
namespace {

constexpr std::uint32_t adjustment_draw = first_method_purpose + 71;

bool knows_layer(const model& net, const std::string& layer) {
  const auto maps = net.maps();
  return layer.empty() || std::find(maps.begin(), maps.end(), layer) != maps.end();
}

rng_key draw_of_task(std::uint64_t seed, task_id task) {
  return {.seed = seed, .purpose = adjustment_draw, .task = task};
}

} // namespace

// -- the net in two parts ---------------------------------------------------------------------------------------------

model_ref backbone_of(const method_setup& setup, const std::string& layer) {
  if (layer.empty())
    return setup.net;
  return std::make_shared<const intermediate_model>(setup.net, layer, setup.shape);
}

split_model split(const method_setup& setup, model_ref backbone, model_ref back, const at::Tensor& initial) {
  split_model net{.whole = setup, .head_setup = setup, .backbone = std::move(backbone)};
  net.chain = std::make_shared<const chained_model>(net.backbone, back);
  net.head_setup.net = std::move(back);
  net.head_setup.initial = weights_only(initial.to(setup.initial->at(flat_weights).device()));
  net.head_setup.trainable = trainable_part::all;
  net.head_setup.shape = {1, 1, net.features()};
  net.backbone_weights = setup.initial;
  return net;
}

diagnostics validate_backbone_of_method(const method_setup& setup, const std::string& layer) {
  diagnostics errors;
  if (const auto maps = setup.net->maps(); !knows_layer(*setup.net, layer))
    errors.push_back({"strategy.feature_layer",
                      fmt::format("strategy.feature_layer = \"{}\": the backbone '{}' has no layer of this name to "
                                  "read features from; expected {}",
                                  layer, setup.net->identity(),
                                  maps.empty() ? "\"\", its last ones"
                                               : fmt::format("\"\", or one of: {}", fmt::join(maps, ", ")))});
  if (setup.trainable != trainable_part::all)
    errors.push_back({"model.trainable", "model.trainable = \"head\": the method freezes the whole net itself and "
                                         "trains what follows it; expected \"all\""});
  if (setup.training.augment != augmentation_kind::none)
    errors.push_back({"training.augment", "training.augment: features of the frozen backbone are computed once for "
                                          "each row, so images cannot change from round to round; expected \"none\""});
  for (std::size_t t = 1; t < setup.task_classes.size(); ++t)
    if (setup.task_classes[t].low != setup.task_classes[t - 1].high) {
      errors.push_back({"tasks.kind", "tasks.kind: the method distinguishes old rows from new ones by class, but these "
                                      "tasks repeat their classes; expected \"class-incremental\""});
      break;
    }
  return errors;
}

// -- server half ------------------------------------------------------------------------------------------------------

task<task_plan> split_server::open_task(server_context&, const round_info& info) {
  if (info.task.value > 0) {
    teacher_ = weights_only(weights());
    if (how_.drawn_each_task)
      set_weights(draw_adjustment(*net_->head_setup.net, how_.draw, draw_of_task(net_->head_setup.seed, info.task)));
  }
  co_return task_plan{};
}

broadcast split_server::open_round(const round_info& info) {
  auto sent = averaging_server::open_round(info);
  if (how_.sends_teacher)
    sent.extra = teacher_;
  return sent;
}

predictor predictor_of(const split_model& net, const at::Tensor& back) {
  const auto& backbone = net.backbone_weights->at(flat_weights);
  predictor whole{.net = net.chain, .weights = weights_only(at::cat({backbone, back.to(backbone.device())}))};
  whole.classifier = classifier_stage{
      .net = net.head_setup.net, .front_net = net.backbone, .front = net.backbone_weights, .reads = net.features()};
  return whole;
}

predictor split_server::predict() const { return predictor_of(*net_, weights()); }

void split_server::persist(archive& state) {
  averaging_server::persist(state);
  state(teacher_);
}

// -- client half ------------------------------------------------------------------------------------------------------

task<feature_memory> features_of_rows(client_context& ctx, const broadcast& in, const split_model& net,
                                      exemplar_rules rules) {
  auto memory = feature_memory::saved_in(ctx.memory());
  const auto task = in.info.task.value;
  if (!memory.knows(task)) {
    extract_job looking{.net = net.backbone, .weights = net.backbone_weights, .samples = ctx.samples()};
    looking.logits = false;
    looking.frozen = true;
    auto extracting = ctx.extract(std::move(looking));
    const auto extracted = co_await extracting;
    embedding_rows rows{.features = extracted.features.cpu().contiguous(),
                        .labels = extracted.labels.cpu().to(at::kInt)};
    memory.begin(task, std::move(rows), rules);
  }
  co_return memory;
}

train_job split_method::training(const client_context& ctx, const broadcast& in, sample_view samples) const {
  auto job =
      local_training(net_->head_setup, ctx, in, {.samples = std::move(samples), .classes = in.info.seen_classes});
  job.objective = objective_;
  return job;
}

task<client_result> split_method::client_round(client_context& ctx, const broadcast& in) const {
  auto looking = features_of_rows(ctx, in, *net_, {.ratio = 0.0});
  const auto features = co_await looking;
  const std::vector<embedding_rows> parts{features.current()};
  auto learning = ctx.train(training(ctx, in, rows_to_train(parts, net_->features())));
  const auto learned = co_await learning;
  auto memory = std::make_shared<tensor_map>();
  features.save(*memory);
  co_return client_result{.upload = learned.weights, .memory = memory, .rows = learned.rows_seen};
}

// -- the method -------------------------------------------------------------------------------------------------------

void split_options::keys(key_table& table) {
  table.integers("adjustment_hidden", net.hidden, {.low = 1, .high = 65'536},
                 "Widths of the adjustment module's hidden blocks: linear, batch norm, ReLU, dropout.");
  table.integer("adjustment_width", net.width, {.low = 1, .high = 65'536}, "Output width of the module.");
  table.integer("head_width", net.head, {.low = 1, .high = 65'536}, "Width of the head's hidden block.");
  table.choice("shortcut", net.shortcut,
               {{"hidden-projection", shortcut_form::hidden_projection},
                {"input-projection", shortcut_form::input_projection},
                {"hidden-sum", shortcut_form::hidden_sum},
                {"none", shortcut_form::none}},
               "Shortcut of the module: from its first hidden block or its input through a matrix to its output, from "
               "its first to its last hidden block, or none.");
  table.flag("batch_norm", net.batch_norm, "Blocks contain batch normalization.");
  table.number("dropout", net.dropout, {.low = 0.0, .high = 0.99}, "Dropout rate of a block.");
  table.choice(
      "initial", draw, {{"kaiming", matrix_draw::kaiming}, {"uniform", matrix_draw::uniform}},
      "Initialization of matrices: N(0, 2 / fan in) for images, or U(-b, b) with b = 1 / sqrt(fan in) for texts.");
  table.flag("reinit_each_task", drawn_each_task, "Module and head are reinitialized in every task.");
  backbone_keys(table, layer, feature_cache);
}

void backbone_keys(key_table& table, std::string& layer, std::filesystem::path& cache) {
  table.text("feature_layer", layer, "Backbone layer whose means over pixels are the features; empty: the last layer.");
  table.path("feature_cache", cache,
             "Folder that caches features of the backbone between runs; empty: in memory only.");
}

method_needs split_method::needs() const {
  return {.head = head_kind::none,
          .feature_folder = options_.feature_cache,
          .frozen_net = true,
          .defaults = "[training]\nepochs = 3\nlearning_rate = 0.02\nmomentum = 0.9\nclip_norm = 5.0\n"};
}

diagnostics split_method::check(const method_setup& setup) const {
  auto errors = validate_backbone_of_method(setup, options_.layer);
  if (const auto fault = shape_error(options_.net); !fault.reason.empty())
    errors.push_back({"strategy." + fault.key, fault.reason});
  return errors;
}

model_ref split_method::downstream_net(const method_setup& setup) const {
  return adjustment_net(options_.net, backbone_of(setup, options_.layer)->feature_width(), setup.classes);
}

void split_method::prepare(const method_setup& setup) {
  const auto backbone = backbone_of(setup, options_.layer);
  const auto back = downstream_net(setup);
  const auto initial = setup.initial_downstream ? setup.initial_downstream->at(flat_weights)
                                                : draw_adjustment(*back, options_.draw, draw_of_task(setup.seed, {}));
  net_ = std::make_shared<const split_model>(split(setup, backbone, back, initial));
  objective_ = objective();
}

std::unique_ptr<server_half> split_method::make_server() const {
  return std::make_unique<split_server>(net_, split_server::rules{.sends_teacher = needs_teacher(),
                                                                  .drawn_each_task = options_.drawn_each_task,
                                                                  .draw = options_.draw});
}

} // namespace mneme

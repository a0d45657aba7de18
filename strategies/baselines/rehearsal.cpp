#include "strategies/baselines/rehearsal.hpp"
#include "strategies/shared/training_keys.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>
#include <algorithm>
#include <fmt/format.h>
namespace mneme {
namespace {

constexpr const char *exemplars_name = "exemplars", *tasks_name = "tasks"; // [n] int64; [1] int64: number of memorized
                                                                           // tasks

row_list both(row_list first, const row_list& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

std::int64_t task_of_class(const std::vector<class_range>& tasks, std::int64_t label) {
  return std::find_if(tasks.begin(), tasks.end(),
                      [&](const class_range& own) { return own.low <= label && label < own.high; }) -
         tasks.begin();
}

extract_job features_of(const method_setup& setup, const client_context& ctx, tensors_ref weights, row_list rows) {
  extract_job job{.net = setup.net, .weights = std::move(weights), .samples = view_of(ctx.samples(), std::move(rows))};
  job.logits = false;
  return job;
}

} // namespace

row_list rehearsal_state::all_rows() const { return both(current, exemplars); }

// -- declarations -----------------------------------------------------------------------------------------------------

method_needs rehearsing_method::needs() const {
  return {.rows = row_visibility::cumulative,
          .round_barrier = options_.readout == class_readout::nearest_mean,
          .defaults = "[strategy]\nweighting = \"uniform\"\n"};
}

void rehearsing_method::memory_keys(key_table& table) {
  table.integer("memory", options_.memory_rows, {.low = 1, .high = 100'000'000},
                "Number of exemplars, per client or of all clients together (memory_scope).");
  table.choice("memory_scope", options_.scope,
               {{"client", memory_scope::client}, {"federation", memory_scope::federation}},
               "Meaning of strategy.memory: exemplars per client, or of all clients of the run, split evenly.");
  table.choice("exemplars", options_.choice,
               {{"greedy", exemplar_choice::greedy},
                {"repeats", exemplar_choice::repeats},
                {"duplicates", exemplar_choice::duplicates},
                {"rank", exemplar_choice::rank},
                {"first", exemplar_choice::first}},
               "Herding without repeats (PyCIL); herding that may choose a row again and keeps it once (iCaRL's "
               "official code) or twice (GLFC, LGA); the rows nearest to the class mean; or the first rows.");
}

void rehearsing_method::readout_keys(key_table& table) {
  table.choice("readout", options_.readout, {{"nme", class_readout::nearest_mean}, {"argmax", class_readout::argmax}},
               "Classification after the last round of a task: the nearest mean of exemplars, or the largest logit as "
               "in all other rounds.");
  table.flag("mirrored", options_.mirrored,
             "Compute means over exemplars and their mirrored images; rows of numbers and of tokens are not mirrored.");
}

std::int64_t rehearsing_method::memory_rows(const method_setup& setup) const {
  return options_.scope == memory_scope::client ? options_.memory_rows
                                                : options_.memory_rows / std::max<std::int64_t>(setup.clients, 1);
}

diagnostics rehearsing_method::check(const method_setup& setup) const {
  auto errors = averaging_method::check(setup);
  append(errors, reject_token_losses(setup, "the method distills class scores of rows and selects rows by features"));
  for (std::size_t t = 1; t < setup.task_classes.size(); ++t)
    if (setup.task_classes[t].low != setup.task_classes[t - 1].high) {
      errors.push_back({"tasks.kind", "tasks.kind: the method rehearses classes of earlier tasks, but these tasks "
                                      "repeat their classes; expected \"class-incremental\""});
      break;
    }
  if (const auto rows = memory_rows(setup); rows < setup.classes)
    errors.push_back(
        {"strategy.memory",
         fmt::format("strategy.memory = {}: {} exemplars per client cannot cover the {} classes of the run; expected "
                     "at least {}",
                     options_.memory_rows, rows, setup.classes,
                     options_.scope == memory_scope::client ? setup.classes : setup.classes * setup.clients)});
  return errors;
}

void rehearsing_method::prepare(const method_setup& setup) {
  averaging_method::prepare(setup);
  transmitted_ = transmitted_weights(setup.net, setup.trainable);
  mirrors_ = options_.mirrored && setup.has_images() && setup.shape[1] > 1; // a row of height 1 is a vector, not an
                                                                            // image
  if (options_.readout == class_readout::nearest_mean)
    sums_ = unit_feature_sums(setup.net, setup.classes, mirrors_);
}

std::unique_ptr<server_half> rehearsing_method::make_server() const {
  return std::make_unique<rehearsing_server>(setup());
}

class_split rehearsing_method::split_of(const round_info& info) const {
  const auto& tasks = setup().task_classes;
  class_split split{.task = task_of_class(tasks, info.seen_classes.high - 1)};
  if (split.task == std::ssize(tasks))
    return {.fresh = info.seen_classes}; // used if the run declares no tasks
  split.fresh = tasks[static_cast<std::size_t>(split.task)];
  if (split.task > 0)
    split.before = tasks[static_cast<std::size_t>(split.task - 1)];
  return split;
}

// -- steps of a client's round ----------------------------------------------------------------------------------------

task<rehearsal_state> rehearsing_method::load_rehearsal(client_context& ctx, const broadcast& in) const {
  const auto& source = *ctx.samples().source;
  const auto own_task = static_cast<std::int64_t>(in.info.task.value);
  rehearsal_state now{.classes = split_of(in.info),
                      .start = full_weights(in.weights, in),
                      .exemplars = to_row_list(ctx.memory().find(exemplars_name)),
                      .is_last = in.info.round_of_task + 1 == in.info.rounds_of_task};
  const auto* const memorized_tasks = ctx.memory().find(tasks_name);
  const auto known = memorized_tasks ? memorized_tasks->item<std::int64_t>() : 0;
  std::vector<row_list> finished(static_cast<std::size_t>(own_task));
  for (const auto row : *ctx.samples().rows) {
    const auto row_task = task_of_class(setup().task_classes, source.label(row));
    if (row_task >= own_task)
      now.current.push_back(row);
    else if (row_task >= known)
      finished[static_cast<std::size_t>(row_task)].push_back(row);
  }

  row_list encoding;
  for (const auto& rows : finished)
    encoding = both(std::move(encoding), rows);
  if (!encoding.empty()) {
    auto looking = ctx.extract(features_of(setup(), ctx, now.start, encoding));
    const auto encoded = co_await looking;
    const auto features = herd_features(encoded.features, own_task);
    std::int64_t first = 0;
    for (const auto& rows : finished) {
      if (rows.empty())
        continue;
      now.exemplars = update_exemplars(source, now.exemplars, rows, features.narrow(0, first, std::ssize(rows)),
                                       {.rows_max = memory_rows(setup()), .choice = options_.choice});
      first += std::ssize(rows);
    }
  }
  if (known < own_task) {
    auto saved = std::make_shared<tensor_map>();
    saved->put(exemplars_name, at::tensor(now.exemplars, at::kLong));
    saved->put(tasks_name, at::tensor({own_task}, at::kLong));
    now.memory = std::move(saved);
  }
  now.each = exemplars_per_class(memory_rows(setup()), std::ssize(labels_in(source, now.all_rows())));
  co_return now;
}

train_job rehearsing_method::training(const client_context& ctx, const broadcast& in, const rehearsal_state& now,
                                      row_list rows) const {
  auto job = local_training(setup(), ctx, in,
                            {.samples = view_of(ctx.samples(), std::move(rows)), .classes = in.info.seen_classes});
  job.start = now.start;
  if (in.extra && now.classes.old() > 0)
    job.add_teacher(in.extra, {.classes = {0, now.classes.old()}});
  return job;
}

task<row_list> rehearsing_method::herd_current_rows(client_context& ctx, const rehearsal_state& now,
                                                    tensors_ref weights) const {
  auto looking = ctx.extract(features_of(setup(), ctx, std::move(weights), now.current));
  const auto encoded = co_await looking;
  co_return choose_of_classes(*ctx.samples().source, now.current, herd_features(encoded.features, now.classes.task + 1),
                              now.each, options_.choice);
}

task<row_list> rehearsing_method::choose_balanced_rows(client_context& ctx, const rehearsal_state& now,
                                                       tensors_ref weights) const {
  auto herding = herd_current_rows(ctx, now, std::move(weights));
  const auto fresh = co_await herding;
  co_return both(first_of_classes(*ctx.samples().source, now.exemplars, now.each), fresh);
}

task<tensors_ref> rehearsing_method::class_sums(client_context& ctx, const rehearsal_state& now,
                                                tensors_ref weights) const {
  if (!now.is_last || !sums_ || now.all_rows().empty())
    co_return nullptr;
  auto herding = herd_current_rows(ctx, now, weights);
  const auto fresh = co_await herding;
  const auto rows = both(now.exemplars, fresh);
  program_job summing{.body = sums_,
                      .in = weights_only(weights->at(flat_weights)),
                      .samples = view_of(ctx.samples(), rows),
                      .rows = (mirrors_ ? 2 : 1) * std::ssize(rows)};
  auto sum = ctx.run(std::move(summing));
  const auto sums = co_await sum;
  co_return sums.out;
}

client_result rehearsing_method::result_of(const rehearsal_state& now, const tensors_ref& weights,
                                           const tensors_ref& more) const {
  auto upload = std::make_shared<tensor_map>(*transmitted_.pick(weights->at(flat_weights)));
  if (more)
    for (const auto& [name, value] : *more)
      upload->put(name, value);
  client_result result;
  result.upload = upload;
  result.memory = now.memory;
  result.rows = std::ssize(now.current) + std::ssize(now.exemplars);
  return result;
}

// -- server half ------------------------------------------------------------------------------------------------------

task<task_plan> rehearsing_server::open_task(server_context& ctx, const round_info& info) {
  by_means_ = false;
  auto opening = teacher_server::open_task(ctx, info);
  const auto plan = co_await opening;
  co_return plan;
}

void rehearsing_server::fold(const delivery& in) {
  sums_.add(*in.upload);
  fold_more(in);
  auto learned = std::make_shared<tensor_map>();
  const auto present = transmitted_.pick(weights());
  for (const auto& [name, value] : *present)
    learned->put(name, in.upload->at(name));
  auto plain = in;
  plain.upload = learned;
  averaging_server::fold(plain);
}

task<void> rehearsing_server::close_round(server_context&, const round_info& info) {
  average();
  if (info.round_of_task + 1 == info.rounds_of_task) {
    sums_.update();
    by_means_ = sums_.means().defined();
    end_task(info);
  }
  co_return;
}

predictor rehearsing_server::predict() const {
  auto learned = averaging_server::predict();
  if (by_means_) {
    learned.kind = readout_kind::cosine;
    learned.readout = sums_.means();
  }
  return learned;
}

void rehearsing_server::persist(archive& state) {
  teacher_server::persist(state);
  state(sums_)(by_means_);
}

} // namespace mneme

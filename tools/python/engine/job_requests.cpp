#include "tools/python/engine/job_requests.hpp"
#include "runtime/method/second_view.hpp"
#include "runtime/options/number_limits.hpp"
#include "runtime/training/job_validation.hpp"
#include <ATen/ATen.h>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>
#include <map>
#include <nanobind/stl/string.h>
#include <optional>
#include <set>
namespace mneme {
namespace {

using nb::literals::operator""_a;

/// Names in other libraries of options that mneme also has.
const std::map<std::string, const char*> usual_names{
    {"lr", "learning_rate"},        {"batch_size", "batch"}, {"num_epochs", "epochs"}, {"wd", "weight_decay"},
    {"max_grad_norm", "clip_norm"}, {"data", "rows"},        {"dataset", "rows"},      {"samples", "rows"},
    {"criterion", "loss"},          {"objective", "loss"},   {"model", "start"},       {"auxiliary", "side"}};

/// Reads options by name, and reports those that were not read.
class option_reader {
public:
  option_reader(const char* job, const nb::kwargs& options) : job_(job), options_(options), unread_(options.size()) {}

  /// Returns an option, or null if it is missing or None. Must be called once per option.
  [[nodiscard]] nb::object find(const char* name) {
    known_.at(static_cast<std::size_t>(known_count_++)) = name;
    if (unread_ == 0)
      return {};
    auto* const value = PyDict_GetItemString(options_.ptr(), name);
    if (value)
      --unread_;
    return value && value != Py_None ? nb::borrow(value) : nb::object();
  }
  void integer(const char* name, std::int64_t& into, std::int64_t low, std::int64_t high = integer_max) {
    const auto value = find(name);
    if (!value.is_valid())
      return;
    int overflow = 0;
    const bool is_integer = PyLong_Check(value.ptr()) && !PyBool_Check(value.ptr());
    const auto number = is_integer ? PyLong_AsLongLongAndOverflow(value.ptr(), &overflow) : 0;
    if (!is_integer || overflow != 0 || number < low || number > high)
      reject(name, value, fmt::format("an integer in [{}, {}]", low, high));
    into = number;
  }
  void number(const char* name, double& into, double low) {
    const auto value = find(name);
    if (!value.is_valid())
      return;
    const double number = PyBool_Check(value.ptr()) ? -1.0 : PyFloat_AsDouble(value.ptr());
    if (PyErr_Occurred()) {
      PyErr_Clear();
      reject(name, value, "a number");
    }
    if (!(number >= low) || number > number_max || (number != 0.0 && std::abs(number) < number_min)) // also for NaN
      reject(name, value, fmt::format("a number in [{}, {}], and 0 or at least {}", low, number_max, number_min));
    into = number;
  }
  void flag(const char* name, bool& into) {
    const auto value = find(name);
    if (value.is_valid() && !PyBool_Check(value.ptr()))
      reject(name, value, "True or False");
    if (value.is_valid())
      into = value.is(nb::handle(Py_True));
  }
  /// Returns the rows of an option; nullopt if it is missing or None.
  [[nodiscard]] std::optional<sample_view> rows(const char* name, const job_defaults& world) {
    const auto value = find(name);
    if (!value.is_valid())
      return std::nullopt;
    row_set* given = nullptr;
    if (nb::try_cast<row_set*>(value, given) && given)
      return rows_of_world(name, *given, world);
    if (!world.samples.source)
      reject(name, value, "rows, as ctx.rows or ctx.rows_of(images, labels)");
    try {
      return row_set{.samples = world.samples, .owner = world.owner}.pick(value).samples;
    } catch (const std::invalid_argument& refused) {
      throw std::invalid_argument(fmt::format("{}: {}", label(name), refused.what()));
    }
  }
  void classes(const char* name, class_range& into, std::int64_t classes_max) {
    const auto value = find(name);
    if (!value.is_valid())
      return;
    std::int64_t start = -1, stop = -1, step = 0;
    const bool is_range = PyRange_Check(value.ptr()) && nb::try_cast(value.attr("start"), start) &&
                          nb::try_cast(value.attr("stop"), stop) && nb::try_cast(value.attr("step"), step);
    if (!is_range || step != 1 || start < 0 || stop <= start || stop > classes_max)
      reject(name, value, fmt::format("a range of classes within range(0, {})", classes_max));
    into = {start, stop};
  }
  [[noreturn]] void reject(const char* name, nb::handle value, const std::string& expected) const {
    throw std::invalid_argument(fmt::format("{} = {}; expected {}", label(name),
                                            nb::cast<std::string>(nb::repr(value)).substr(0, 100), expected));
  }
  [[nodiscard]] std::string label(const char* name) const { return fmt::format("ctx.{}: {}", job_, name); }
  /// Throws std::invalid_argument if options were not read.
  void finish() const {
    if (unread_ == 0)
      return;
    const std::set<std::string> known(known_.begin(), known_.begin() + known_count_);
    for (auto [key, value] : options_)
      if (const auto name = nb::cast<std::string>(key); !known.contains(name)) {
        const auto usual = usual_names.find(name);
        const auto meant = usual != usual_names.end() && known.contains(usual->second)
                               ? std::string(usual->second)
                               : closest_match(name, {known.begin(), known.end()});
        throw std::invalid_argument(fmt::format("ctx.{} has no option '{}'{}", job_, name,
                                                meant.empty() ? "" : "; did you mean '" + meant + "'?"));
      }
  }

private:
  /// Returns the rows. Throws std::invalid_argument if they belong to another client or to the server.
  [[nodiscard]] sample_view rows_of_world(const char* name, const row_set& given, const job_defaults& world) const {
    if (!given.owner)
      return given.samples;
    given.owner->expect_alive();
    if (world.owner && !given.owner->is_same(*world.owner))
      throw std::invalid_argument(
          fmt::format("{} are rows of {}, but {} requests the job; expected its own rows, as ctx.rows", label(name),
                      given.owner->name(), world.owner->name()));
    return given.samples;
  }

  const char* job_;
  const nb::kwargs& options_;
  std::size_t unread_; // number of options not read yet
  std::array<const char*, 32> known_{};
  std::ptrdiff_t known_count_ = 0;
};

tensors_ref weights_option(option_reader& options, const char* name, const job_defaults& world) {
  const auto value = options.find(name);
  if (!value.is_valid() || value.is(world.start_object)) {
    if (!world.start)
      throw std::invalid_argument(options.label(name) + " is missing; expected weights of the net");
    return world.start;
  }
  return weights_only(flat_tensor_of(value, world.setup->net->size(), options.label(name)));
}

loss_object loss_option(option_reader& options) {
  const auto value = options.find("loss");
  if (!value.is_valid())
    return {.terms = {.cross_entropy = 1.0}, .objective = cross_entropy_objective()};
  loss_object* given = nullptr;
  if (!nb::try_cast<loss_object*>(value, given) || !given)
    options.reject("loss", value, "a loss of mneme, as mneme.cross_entropy(), or mneme.loss(function)");
  return *given;
}

tensors_ref tensors_option(option_reader& options, const char* name) {
  const auto value = options.find(name);
  return value.is_valid() ? std::make_shared<const tensor_map>(tensors_of(value, options.label(name))) : nullptr;
}

void result_option(option_reader& options, training_options& into) {
  const auto value = options.find("result");
  if (!value.is_valid())
    return;
  const std::map<std::string, training_result> words{{"weights", training_result::weights},
                                                     {"gradient", training_result::gradient},
                                                     {"squared-gradients", training_result::squared_gradients},
                                                     {"row-norms", training_result::row_norms}};
  const auto chosen = words.find(nb::cast<std::string>(nb::str(value)));
  if (chosen == words.end())
    options.reject("result", value, "'weights', 'gradient', 'squared-gradients' or 'row-norms'");
  into.result = chosen->second;
}

void side_options(option_reader& options, const job_defaults& world, train_job& job) {
  job.auxiliary = tensors_option(options, "side");
  if (const auto teacher = options.find("teacher"); teacher.is_valid()) {
    teacher_view view{.classes = world.info.seen_classes};
    options.classes("taught", view.classes, world.setup->classes);
    job.add_teacher(weights_only(flat_tensor_of(teacher, world.setup->net->size(), options.label("teacher"))), view);
  }
  if (auto replay = options.rows("replay", world)) {
    job.replay.samples = std::move(*replay);
    job.options.replay_rows = job.options.batch_rows;
  }
  options.integer("replay_rows", job.options.replay_rows, 0);
  options.number("replay_weight", job.options.replay_weight, 0.0);
}

/// Reads the target distributions of the rows, which replace their labels.
void targets_option(option_reader& options, const objective_terms& terms, train_job& job) {
  const auto value = options.find("targets");
  if (!value.is_valid())
    return;
  const auto targets = tensor_of(value, options.label("targets"));
  const auto rows = job.samples.size(), classes = job.options.classes.size();
  if (!at::isFloatingType(targets.scalar_type()) || targets.dim() != 2 || targets.size(0) != rows ||
      targets.size(1) != classes)
    throw std::invalid_argument(fmt::format(
        "{} are {} {}; expected float32 [{}, {}], for each row one number per class of the loss",
        options.label("targets"), c10::toString(targets.scalar_type()), targets.sizes().vec(), rows, classes));
  if (!at::isfinite(targets).logical_and(targets.ge(0)).all().item<bool>())
    throw std::invalid_argument(options.label("targets") + " hold numbers that are negative or not finite; expected "
                                                           "numbers of at least 0, whose sum in a row is usually 1");
  if (!terms.cross_entropy || !terms.written.empty())
    throw std::invalid_argument("ctx.train(): targets are given, but the loss reads labels; expected "
                                "mneme.cross_entropy(), without losses in Python");
  job.annotations.targets = targets.to(at::kCPU, at::kFloat).contiguous();
}

/// Adds a second view of the rows. Throws std::invalid_argument if both views would be equal, or if the loss compares
/// two views and the job has one.
void views_option(option_reader& options, const objective_terms& terms, train_job& job) {
  std::int64_t views = 1;
  options.integer("views", views, 1, 2);
  if (views == 1 && terms.reads_views())
    throw std::invalid_argument(
        "ctx.train(): the loss compares two views of the rows, but views = 1; expected views=2");
  if (views == 1)
    return;
  if (job.replay.samples.source)
    throw std::invalid_argument("ctx.train(): views = 2 with replay; expected one of them");
  if (job.options.result != training_result::weights)
    throw std::invalid_argument("ctx.train(): views = 2 with a result other than 'weights'; expected views=1");
  const bool differ = job.options.augment != augmentation_kind::none || job.net->uses_random_numbers() ||
                      (job.samples.source && job.samples.source->deviations.defined());
  if (!differ)
    throw std::invalid_argument(
        "ctx.train(): views = 2, but both views are equal: training.augment = \"none\", and the "
        "net has no dropout; expected an augmentation, such as training.augment = "
        "\"crop-flip\"");
  add_second_view(job);
}

/// Throws std::invalid_argument if the loss needs a teacher and none is given, or the reverse.
void expect_teacher(const train_job& job, bool reads_teacher) {
  const bool has_teacher = !job.teachers.empty();
  if (reads_teacher != has_teacher)
    throw std::invalid_argument(
        has_teacher
            ? "ctx.train(): teacher is given, but the loss does not use it; expected loss=mneme.cross_entropy() + "
              "mneme.distillation(), or a loss with the argument teacher_logits"
            : "ctx.train(): the loss compares the net with a teacher, but none is given; expected teacher=weights");
  if (!has_teacher)
    return;
  const auto taught = job.options.teachers.front().classes, classes = job.options.classes;
  if (taught.low != classes.low || taught.high > classes.high || taught.size() == 0)
    throw std::invalid_argument(
        fmt::format("ctx.train(): taught = range({}, {}); expected the first classes of the loss, range({}, {})",
                    taught.low, taught.high, classes.low, classes.high));
}

/// Adds the tensors of quadratic penalties to the job. Throws std::invalid_argument if they are not of this net, or if
/// the loss consists of penalties only.
void expect_rows_and_tensors(const objective_terms& terms, const model& net, train_job& job) {
  if (!terms.has_rows())
    throw std::invalid_argument("ctx.train(): the loss has penalties of weights and no value for each row; expected a "
                                "sum, as mneme.cross_entropy() + penalty");
  if (terms.quadratic.empty())
    return;
  for (const auto& term : terms.quadratic)
    if (term.importance.numel() != net.size())
      throw std::invalid_argument(fmt::format("ctx.train(): mneme.quadratic() has {} numbers; expected {}, one of each "
                                              "weight of the net",
                                              term.importance.numel(), net.size()));
  auto all = job.auxiliary ? *job.auxiliary : tensor_map{};
  terms.add_tensors(all);
  job.auxiliary = std::make_shared<const tensor_map>(std::move(all));
}

} // namespace

void expect_named(const char* job, const nb::args& unnamed) {
  if (unnamed.size() > 0)
    throw nb::type_error(fmt::format("ctx.{}() has {} without a name; expected every option by name, as in {}", job,
                                     unnamed.size() == 1 ? "an argument" : "arguments",
                                     std::string_view(job) == "train"
                                         ? "ctx.train(start=broadcast.weights, loss=mneme.cross_entropy())"
                                         : fmt::format("ctx.{}(weights=broadcast.weights, rows=ctx.rows)", job))
                             .c_str());
}

const char* const train_doc = R"(train(*, start, loss, rows, epochs, ...) -> Job

Describes a training; `trained = yield ctx.train(...)` runs it. All options are given by name. An option that is missing
or None has its default.

start: Tensor [P] float32 = the weights of the broadcast. Weights at the start.
loss: Loss = mneme.cross_entropy(). The objective: native losses, functions by mneme.loss(), and their sums.
rows: Rows, or integers = ctx.rows. The rows to train on, or their numbers.
epochs: int = training.epochs. Passes over the rows; 0 trains nothing.
batch: int = training.batch. Rows per step; 0: all rows.
learning_rate: float = that of the scenario in this round, after its schedule.
momentum: float = training.momentum. Of SGD.
weight_decay: float = training.weight_decay.
clip_norm: float = training.clip_norm. Upper bound of a step's gradient norm; 0: none.
classes: range = the classes of all opened tasks. Classes that the loss covers; labels count from its first one.
result: str = 'weights'. What the job returns: 'weights', the trained weights; 'gradient', of the mean loss at start;
    'squared-gradients', their mean over steps (Fisher information); 'row-norms', the gradient norm of each row.
side: dict of Tensors = none. Tensors that the loss reads by name: its argument `side`, or 'correction' of
    mneme.corrected().
teacher: Tensor [P] float32 = none. Weights of a teacher of the same net, for mneme.distillation() or a loss with the
    argument teacher_logits.
taught: range = the classes of all opened tasks. Classes of the teacher's logits, the first ones of the loss.
targets: Tensor [n, C] float32 = none. For each row a distribution over the classes of the loss, in place of its label.
views: int = 1. 2: every step has its rows twice, each time with its own augmentation and dropout. A loss with the
    argument view_logits or view_features compares both views; other losses are means over both.
replay: Rows, or integers = none. A second set of rows, from which every step has replay_rows more.
replay_rows: int = batch. Replayed rows per step; 0: none.
replay_weight: float = 1.0. Step loss = mean over own rows + replay_weight * mean over replayed rows.
stream: int = 0. Number of the random stream that shuffles the rows; jobs of one round with equal numbers share it.)";

const char* const extract_doc = R"(extract(*, weights, rows, logits) -> Job

Describes a pass that returns features; `found = yield ctx.extract(...)` runs it. All options are given by name.

weights: Tensor [P] float32 = the weights of the broadcast.
rows: Rows, or integers = ctx.rows. The rows, or their numbers.
logits: bool = False. Return logits, too.)";

const char* const statistics_doc = R"(statistics(*, weights, rows, gram) -> Job

Describes a pass that returns sums of features by class; `found = yield ctx.statistics(...)` runs it. All options are
given by name.

weights: Tensor [P] float32 = the weights of the broadcast.
rows: Rows, or integers = ctx.rows. The rows, or their numbers.
gram: bool = False. Return the Gram matrix of the features, too.)";

const char* const evaluate_doc = R"(evaluate(*, weights, rows, classes) -> Job

Describes an evaluation; `seen = yield ctx.evaluate(...)` runs it. All options are given by name.

weights: Tensor [P] float32 = the weights of the broadcast.
rows: Rows, or integers = ctx.rows. The rows, or their numbers.
classes: range = the classes of all opened tasks. The prediction is the largest logit among them.)";

job_request train_request(const job_defaults& world, const nb::kwargs& given) {
  option_reader options("train", given);
  const auto& setup = *world.setup;
  train_job job{.net = setup.net, .start = weights_option(options, "start", world)};
  job.samples = options.rows("rows", world).value_or(world.samples);
  const auto loss = loss_option(options);
  job.objective = loss.objective;
  job.options = options_for_round(setup.training, setup.trainable, world.info.seen_classes, world.info.round_of_task,
                                  world.info.rounds_of_task);
  options.integer("epochs", job.options.epochs, 0);
  options.integer("batch", job.options.batch_rows, 0);
  options.number("learning_rate", job.options.learning_rate, 0.0);
  options.number("momentum", job.options.momentum, 0.0);
  options.number("weight_decay", job.options.weight_decay, 0.0);
  options.number("clip_norm", job.options.clip_norm, 0.0);
  options.classes("classes", job.options.classes, setup.classes);
  result_option(options, job.options);
  side_options(options, world, job);
  targets_option(options, loss.terms, job);
  views_option(options, loss.terms, job);
  expect_teacher(job, loss.terms.reads_teacher());
  expect_rows_and_tensors(loss.terms, *setup.net, job);
  job.stream = world.stream;
  std::int64_t stream = 0;
  options.integer("stream", stream, 0, std::numeric_limits<std::int64_t>::max());
  job.stream.index = static_cast<std::uint64_t>(stream);
  options.finish();
  return {.request = std::move(job)};
}

job_request extract_request(const job_defaults& world, const nb::kwargs& given) {
  option_reader options("extract", given);
  extract_job job{.net = world.setup->net, .weights = weights_option(options, "weights", world)};
  job.samples = options.rows("rows", world).value_or(world.samples);
  options.flag("logits", job.logits);
  options.finish();
  return {.request = std::move(job)};
}

job_request statistics_request(const job_defaults& world, const nb::kwargs& given) {
  option_reader options("statistics", given);
  statistics_job job{.net = world.setup->net, .weights = weights_option(options, "weights", world)};
  job.samples = options.rows("rows", world).value_or(world.samples);
  options.flag("gram", job.gram);
  job.classes = {0, world.setup->classes};
  options.finish();
  return {.request = std::move(job)};
}

job_request evaluate_request(const job_defaults& world, const nb::kwargs& given) {
  option_reader options("evaluate", given);
  evaluate_job job{.learned = {.net = world.setup->net, .weights = weights_option(options, "weights", world)}};
  job.samples = options.rows("rows", world).value_or(world.samples);
  job.mask = world.info.seen_classes;
  options.classes("classes", job.mask, world.setup->classes);
  options.finish();
  return {.request = std::move(job)};
}

// -- comparison -------------------------------------------------------------------------------------------------------

namespace {

/// True for the same data set, and for two sets of generated rows with equal tensors.
bool same_source(const dataset* a, const dataset* b) {
  return a == b ||
         (a && b && a->is_temporary && b->is_temporary && a->labels == b->labels && equal_bits(a->images, b->images) &&
          equal_bits(a->vectors, b->vectors) && equal_bits(a->deviations, b->deviations));
}

bool same_rows(const sample_view& a, const sample_view& b) {
  return same_source(a.source.get(), b.source.get()) && (a.rows == b.rows || (a.rows && b.rows && *a.rows == *b.rows));
}

bool same_job(const train_job& a, const train_job& b) {
  return a.net == b.net && equal_bits(a.start.get(), b.start.get()) && same_rows(a.samples, b.samples) &&
         equal_bits(a.annotations.targets, b.annotations.targets) && same_rows(a.replay.samples, b.replay.samples) &&
         a.objective->identity() == b.objective->identity() && equal_bits(a.auxiliary.get(), b.auxiliary.get()) &&
         std::equal(a.teachers.begin(), a.teachers.end(), b.teachers.begin(), b.teachers.end(),
                    [](const auto& x, const auto& y) { return equal_bits(x.get(), y.get()); }) &&
         a.options == b.options && a.stream == b.stream;
}
bool same_job(const extract_job& a, const extract_job& b) {
  return equal_bits(a.weights.get(), b.weights.get()) && same_rows(a.samples, b.samples) && a.logits == b.logits;
}
bool same_job(const statistics_job& a, const statistics_job& b) {
  return equal_bits(a.weights.get(), b.weights.get()) && same_rows(a.samples, b.samples) && a.gram == b.gram;
}
bool same_job(const evaluate_job& a, const evaluate_job& b) {
  return equal_bits(a.learned.weights.get(), b.learned.weights.get()) && same_rows(a.samples, b.samples) &&
         a.mask == b.mask;
}
bool same_job(const compute_job& a, const compute_job& b) {
  return a.run == b.run && equal_bits(a.in.get(), b.in.get());
}
bool same_job(const program_job& a, const program_job& b) {
  return a.body->name() == b.body->name() && a.body->identity() == b.body->identity() &&
         equal_bits(a.in.get(), b.in.get()) && same_rows(a.samples, b.samples) && a.stream == b.stream;
}

} // namespace

bool same_work(const work& a, const work& b) {
  return a.index() == b.index() &&
         std::visit([&](const auto& first) { return same_job(first, std::get<std::decay_t<decltype(first)>>(b)); }, a);
}

} // namespace mneme

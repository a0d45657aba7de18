#include "tools/python/engine/python_method.hpp"
#include "runtime/base/registry.hpp"
#include "tools/python/engine/python_round.hpp"
#include "tools/python/engine/python_server.hpp"
#include "tools/python/engine/user_errors.hpp"
#include <ATen/ATen.h>
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>
namespace mneme {
namespace {

constexpr std::uint32_t rounds_checked = 2;
constexpr std::size_t views_max = 8; // limit of broadcasts in use by clients of an asynchronous run

std::string text_attribute(nb::handle type, const char* name) { return nb::cast<std::string>(type.attr(name)); }

} // namespace

python_method::python_method(nb::object type) : type_(std::move(type)), name_(text_attribute(type_, "name")) {
  source_digest_ = nb::cast<std::string>(type_.attr("_source_digest")());
  source_ = source_digest_;
  allows_source_change_ = nb::cast<bool>(type_.attr("_allows_source_change"));
  needs_.round_barrier = nb::cast<bool>(type_.attr("round_barrier"));
  needs_.upload_size_known = nb::cast<bool>(type_.attr("_single_training_job")());
  needs_.hide_task_from_clients = nb::cast<bool>(type_.attr("_hide_task_from_clients")());
  needs_.server_trains_on_rows = nb::cast<bool>(type_.attr("central_data"));
  if (nb::cast<bool>(type_.attr("_folds_natively")()))
    uploads_ = upload_content::weights;
  needs_.defaults = nb::cast<std::string>(type_.attr("_defaults_toml")());
  for (auto item : nb::object(type_.attr("_presets_toml")())) {
    auto [name, meaning, toml] = nb::cast<std::tuple<std::string, std::string, std::string>>(item);
    presets_.push_back({.name = name, .meaning = meaning, .toml = toml});
  }
}

python_method::~python_method() {
  const gil_scope held;
  views_.clear();
  client_function_.reset();
  instance_.reset();
  type_.reset();
}

void python_method::keys(key_table& table) {
  under_gil("the keys of a method", [&] {
    for (auto described : nb::object(type_.attr("_keys")()))
      bind_key(table, described);
  });
  table.text("source", source_,
             "Digest of the method's Python source; a run can be resumed only with the same source.");
}

/// Declares a key. @param described tuple (name, default, low, high, choices, help); a bound is None if there is none
void python_method::bind_key(key_table& table, nb::handle described) {
  const auto name = nb::cast<std::string>(described[0]);
  const auto help = nb::cast<std::string>(described[5]);
  const nb::object low = described[2], high = described[3], choices = described[4];
  auto& value = values_.try_emplace(name, nb::cast<hosted_value>(described[1])).first->second;
  range<double> bounds;
  if (!low.is_none())
    bounds.low = nb::cast<double>(low);
  if (!high.is_none())
    bounds.high = nb::cast<double>(high);
  constexpr double whole_max = 0x1p53; // a double represents all integers up to 2^53
  range<std::int64_t> whole{.low = static_cast<std::int64_t>(-whole_max), .high = static_cast<std::int64_t>(whole_max)};
  if (!low.is_none())
    whole.low = static_cast<std::int64_t>(std::clamp(bounds.low, -whole_max, whole_max));
  if (!high.is_none())
    whole.high = static_cast<std::int64_t>(std::clamp(bounds.high, -whole_max, whole_max));
  if (auto* flag = std::get_if<bool>(&value))
    table.flag(name, *flag, help);
  else if (auto* integer = std::get_if<std::int64_t>(&value))
    table.integer(name, *integer, whole, help);
  else if (auto* number = std::get_if<double>(&value))
    table.number(name, *number, bounds, help);
  else if (auto* text = std::get_if<std::string>(&value))
    choices.is_none() ? table.text(name, *text, help)
                      : table.word(name, *text, nb::cast<std::vector<std::string>>(choices), help);
  else if (auto* integers = std::get_if<std::vector<std::int64_t>>(&value))
    table.integers(name, *integers, whole, help);
  else if (auto* numbers = std::get_if<std::vector<double>>(&value))
    table.numbers(name, *numbers, bounds, help);
  else
    table.texts(name, std::get<std::vector<std::string>>(value), help);
}

nb::object python_method::make_instance() const {
  nb::dict values;
  for (const auto& [name, value] : values_)
    values[name.c_str()] = nb::cast(value);
  return type_.attr("_made")(values);
}

diagnostics python_method::check(const method_setup& setup) const {
  if (source_ != source_digest_ && !allows_source_change_)
    return {{"strategy.source", fmt::format("this run was started with another source of the method '{}': its digest "
                                            "was {} and is {}; use the same source, run the scenario again, or let "
                                            "mneme.resume(..., allow_source_change=True) continue it with this one",
                                            name_, source_, source_digest_)}};
  if (setup.net->classes() == 0)
    return {{"model.name", fmt::format("'{}' has no head, so there is nothing to train; every other model has one",
                                       setup.net->identity())}};
  return under_gil("check", [&] {
    diagnostics errors;
    const auto object = make_instance();
    object.attr("__dict__")["setup"] = setup_object(setup);
    for (auto item : nb::object(object.attr("check")()))
      errors.push_back({nb::cast<std::string>(item[0]), nb::cast<std::string>(item[1])});
    return errors;
  });
}

void python_method::prepare(const method_setup& setup) {
  setup_ = setup;
  transmitted_ = transmitted_weights(setup.net, setup.trainable);
  under_gil("prepare", [&] {
    instance_ = make_instance();
    instance_.attr("__dict__")["setup"] = setup_object(setup_);
    instance_.attr("prepare")();
    instance_.attr("_freeze")();
    client_function_ = instance_.attr("client_round");
  });
}

std::shared_ptr<const row_owner> python_method::owner_of(const client_context& ctx, const broadcast& in) const {
  return std::make_shared<const row_owner>(ctx.self(), client_rows_.lock(), setup_.tasks, in.info.task, ctx.samples());
}

bool python_method::is_checked(const round_info& info) { return info.round.value < rounds_checked; }

nb::object python_method::view_of(const broadcast& in) const {
  for (const auto& view : views_)
    if (nb::inst_ptr<broadcast_view>(view)->is_of(in))
      return view;
  broadcast_view shown{.sent = in};
  const auto* const flat = in.weights ? in.weights->find(flat_weights) : nullptr;
  if (flat)
    shown.weights = in.weights;
  else if (in.weights && in.initial_payload && in.initial_payload->find(flat_weights))
    shown.weights = weights_only(transmitted_.complete(in.initial_payload->at(flat_weights), *in.weights));
  shown.weights_object = shown.weights ? torch_object(shown.weights->at(flat_weights)) : nb::none();
  shown.tensors_object = torch_dict(in.extra.get());
  views_.push_back(nb::cast(std::move(shown)));
  if (views_.size() > views_max)
    views_.pop_front();
  return views_.back();
}

task<client_result> python_method::client_round(client_context& ctx, const broadcast& in) const {
  python_round round(*this, ctx);
  round.begin(in);
  while (!round.is_over()) {
    auto asked = ctx.run_all(round.take_stage());
    auto results = co_await asked;
    round.resume(std::move(results));
  }
  co_return round.result();
}

std::unique_ptr<server_half> python_method::make_server() const { return make_hosted_server(*this); }

void host_method(nb::object type) {
  const auto name = text_attribute(type, "name");
  auto& entries = registered<strategy_entry>();
  const auto same = [&](const strategy_entry& entry) { return entry.name == name; };
  const bool is_known = std::any_of(entries.begin(), entries.end(), same);
  static auto* const hosted = new std::map<std::string, nb::object>; // never destroyed, because the interpreter may end
                                                                     // first
  if (is_known && !hosted->contains(name))
    throw std::invalid_argument(fmt::format("'{}' is a built-in method; choose another name", name));
  (*hosted)[name] = std::move(type);
  if (!is_known)
    entries.push_back({.name = name});
  auto& entry = *std::find_if(entries.begin(), entries.end(), same);
  entry.summary = text_attribute((*hosted)[name], "summary");
  entry.make = [name] {
    return under_gil("making a method",
                     [&]() -> std::unique_ptr<strategy> { return std::make_unique<python_method>((*hosted)[name]); });
  };
}

// -- setup ------------------------------------------------------------------------------------------------------------

namespace {

struct setup_view {
  const method_setup* setup;
};

nb::list parameters_of(const setup_view& view) {
  nb::list listed;
  for (const auto& parameter : view.setup->net->layout())
    listed.append(nb::make_tuple(parameter.name, nb::tuple(nb::cast(parameter.shape)), parameter.offset, parameter.size,
                                 parameter.head, parameter.buffer));
  return listed;
}

/// Splits flat weights [P] into tensors by name, in PyTorch's layout.
nb::dict unflattened(const setup_view& view, nb::handle weights) {
  const auto flat = flat_tensor_of(weights, view.setup->net->size(), "weights");
  nb::dict named;
  for (const auto& parameter : view.setup->net->layout())
    named[parameter.name.c_str()] = torch_object(as_in_files(flat, parameter));
  return named;
}

/// Inverse of unflattened(). Missing names become zeros.
nb::object flattened(const setup_view& view, nb::handle named) {
  const auto tensors = tensors_of(named, "tensors");
  auto flat = at::zeros({view.setup->net->size()}, at::kFloat);
  std::size_t known = 0;
  for (const auto& parameter : view.setup->net->layout())
    if (const auto* const values = tensors.find(parameter.name)) {
      if (values->sizes() != at::IntArrayRef(parameter.shape))
        throw std::invalid_argument(fmt::format("tensors['{}'] has the shape [{}]; expected [{}]", parameter.name,
                                                fmt::join(values->sizes(), ", "), fmt::join(parameter.shape, ", ")));
      put_as_in_files(flat, parameter, values->to(at::kFloat));
      ++known;
    }
  if (known != tensors.size())
    for (const auto& [name, values] : tensors)
      if (std::none_of(view.setup->net->layout().begin(), view.setup->net->layout().end(),
                       [&](const auto& parameter) { return parameter.name == name; }))
        throw std::invalid_argument(fmt::format("tensors['{}']: the net has no parameter of this name", name));
  return torch_object(flat);
}

} // namespace

nb::object setup_object(const method_setup& setup) { return nb::cast(setup_view{&setup}); }

void bind_method_setup(nb::module_& module) {
  nb::class_<setup_view>(module, "Setup", "Facts about the run, for a method's prepare().")
      .def_prop_ro("classes", [](const setup_view& v) { return v.setup->classes; })
      .def_prop_ro("tasks", [](const setup_view& v) { return v.setup->tasks; })
      .def_prop_ro("clients", [](const setup_view& v) { return v.setup->clients; })
      .def_prop_ro("seed", [](const setup_view& v) { return v.setup->seed; })
      .def_prop_ro(
          "shape",
          [](const setup_view& v) { return nb::make_tuple(v.setup->shape[0], v.setup->shape[1], v.setup->shape[2]); },
          "Channels, height and width of the data.")
      .def_prop_ro(
          "initial",
          [](const setup_view& v) {
            return v.setup->initial ? torch_object(v.setup->initial->at(flat_weights)) : nb::none();
          },
          "Initial weights [P] float32, read-only.")
      .def_prop_ro("parameters", &parameters_of,
                   "(name, shape in files, offset, size, head, buffer) of each within [P]; order within is the net's.")
      .def("unflatten", &unflattened, nb::arg("weights"), "{name: tensor as in files} of weights [P].")
      .def("flatten", &flattened, nb::arg("tensors"), "Weights [P] of {name: tensor as in files}; zeros of others.")
      .def_prop_ro("features", [](const setup_view& v) { return v.setup->net->feature_width(); })
      .def_prop_ro("learning_rate", [](const setup_view& v) { return v.setup->training.learning_rate; })
      .def_prop_ro("epochs", [](const setup_view& v) { return v.setup->training.epochs; })
      .def_prop_ro("batch", [](const setup_view& v) { return v.setup->training.batch; });
}

} // namespace mneme

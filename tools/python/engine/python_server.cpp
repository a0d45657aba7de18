#include "tools/python/engine/python_server.hpp"
#include "runtime/base/exception_message.hpp"
#include "runtime/federation/persisted_values.hpp"
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
namespace mneme {

using nb::literals::operator""_a;

const delivery& delivery_view::live() const {
  if (!in)
    throw std::invalid_argument("an upload was used after fold(); copy the values that you need");
  return *in;
}

server_context& server_view::live() const {
  if (!context)
    throw std::invalid_argument("self.ctx was used outside of close_round()");
  return *context;
}

job_defaults server_view::world() const {
  static_cast<void>(live());
  return {.setup = setup,
          .info = info,
          .start = start,
          .owner = owner,
          .stream = key_for({.seed = setup->seed, .task = info.task, .visit = info.round.value}, purpose::shuffle)};
}

row_set server_view::rows_of_task(std::int64_t task) const {
  const auto& ctx = live();
  if (!server_trains_on_rows)
    throw std::invalid_argument(
        "self.ctx.rows_of_task() reads clients' rows on the server; expected central_data = True in the class");
  if (task < 0 || task >= setup->tasks)
    throw std::invalid_argument(
        fmt::format("self.ctx.rows_of_task({}): the run has the tasks 0 to {}", task, setup->tasks - 1));
  return {ctx.rows().of_task({static_cast<std::uint32_t>(task)}), owner};
}

// -- server_object ----------------------------------------------------------------------------------------------------

server_object::server_object(const python_method& method, nb::object host) : method_(method) {
  under_gil("making the server", [&] {
    object_ = method_.instance().attr("_made_server")(std::move(host));
    object_.attr("ctx") = nb::cast(server_view{.setup = &method_.setup()});
    predicts_clients_ = nb::cast<bool>(object_.attr("_predicts_clients")());
    sends_weights_ = nb::cast<bool>(object_.attr("sends_weights"));
  });
}

server_object::~server_object() {
  const gil_scope held;
  object_.reset();
}

bool server_object::overrides(const char* name) const {
  return under_gil(name, [&] { return nb::cast<bool>(object_.attr("_overrides")(name)); });
}

void server_object::enter(const round_info& info) {
  info_ = info;
  under_gil("a round", [&] { object_.attr("place") = nb::cast(info); });
}

tensors_ref server_object::opened() const {
  return under_gil("open_round", [&]() -> tensors_ref {
    const nb::object sent = object_.attr("open_round")();
    if (sent.is_none())
      return nullptr;
    tensor_map copies;
    for (const auto& [name, value] : tensors_of(sent, "the result of open_round()"))
      copies.put(name, value.clone());
    return std::make_shared<const tensor_map>(std::move(copies));
  });
}

void server_object::fold(const delivery& in) const {
  under_gil("fold", [&] {
    const auto view = nb::cast(delivery_view{&in});
    try {
      object_.attr("fold")(view);
    } catch (...) {
      nb::inst_ptr<delivery_view>(view)->in = nullptr;
      throw;
    }
    nb::inst_ptr<delivery_view>(view)->in = nullptr;
  });
}

namespace {

/// Runs Python's close_round() stage by stage. Acquires the GIL when needed.
class server_step {
public:
  explicit server_step(server_context& ctx) : context_(ctx) {}
  void begin(const nb::object& server, server_view now) {
    under_gil("close_round", [&] {
      view_ = server.attr("ctx");
      *nb::inst_ptr<server_view>(view_) = std::move(now);
      run_.emplace(nb::object(server.attr("close_round")()), "close_round");
      advance({});
    });
  }
  ~server_step() {
    const gil_scope held;
    if (view_.is_valid())
      nb::inst_ptr<server_view>(view_)->context = nullptr;
    run_.reset();
    view_.reset();
  }
  server_step(const server_step&) = delete;
  server_step& operator=(const server_step&) = delete;
  [[nodiscard]] bool is_over() const { return run_->is_over(); }
  [[nodiscard]] plan take_stage() { return std::move(stage_); }
  void resume(outcomes results) {
    const auto outputs = outputs_of(std::move(results), context_.next_job());
    under_gil("close_round", [&] { advance(outputs); });
  }

private:
  void advance(const std::vector<work_output>& outputs) {
    if (run_->is_over())
      return;
    run_->advance(objects_of(outputs));
    if (!run_->is_over())
      stage_ = make_stage(run_->jobs());
  }

  server_context& context_;
  nb::object view_;
  std::optional<generator_run> run_;
  plan stage_;
};

} // namespace

task<void> server_object::close(server_context& ctx, const round_info& info, tensors_ref start) {
  enter(info);
  server_view now{.setup = &method_.setup(),
                  .context = &ctx,
                  .info = info,
                  .start = std::move(start),
                  .server_trains_on_rows = method_.needs().server_trains_on_rows};
  server_step step(ctx);
  step.begin(object_, std::move(now));
  while (!step.is_over()) {
    auto asked = ctx.run_all(step.take_stage());
    auto results = co_await asked;
    step.resume(std::move(results));
  }
}

at::Tensor server_object::weights(const char* attribute) const {
  return under_gil(attribute, [&] {
    nb::object held = object_.attr(attribute);
    if (PyCallable_Check(held.ptr()) && !nb::hasattr(held, "dtype"))
      held = held();
    const auto count = method_.setup().net->size();
    const auto tensor = flat_tensor_of(held, count, fmt::format("the server's {}", attribute));
    const auto version = nb::hasattr(held, "_version") ? nb::cast<std::int64_t>(held.attr("_version")) : 0;
    if (tensor.const_data_ptr() != copied_ || version != version_ || !frozen_.defined() ||
        !equal_bits(frozen_, tensor)) {
      frozen_ = tensor.clone();
      copied_ = tensor.const_data_ptr();
      version_ = version;
    }
    return frozen_;
  });
}

at::Tensor server_object::predicted_for(client_id client) const {
  return under_gil("predict", [&] {
    const nb::object held = object_.attr("predict")("client"_a = client.value);
    return flat_tensor_of(held, method_.setup().net->size(), "the result of the server's predict(client)").clone();
  });
}

std::map<std::string, double> server_object::summary_metrics() const {
  return under_gil("summary_metrics", [&] {
    const nb::object given = object_.attr("summary_metrics")();
    std::map<std::string, double> figures;
    if (!nb::try_cast(given, figures))
      throw std::invalid_argument(fmt::format("summary_metrics() returned {}; expected a dict of numbers by name",
                                              nb::cast<std::string>(nb::repr(given)).substr(0, 100)));
    return figures;
  });
}

/// Saves or restores the state and the position in the round, because a checkpoint may be taken between open_round()
/// and fold().
void server_object::persist(archive& state) {
  state(info_);
  if (state.loading() && info_)
    enter(*info_);
  std::string text;
  tensor_map tensors;
  const bool saving = !state.loading();
  if (saving)
    under_gil("state", [&] {
      const nb::object packed = object_.attr("_packed")();
      text = nb::cast<std::string>(packed[0]);
      for (const auto& [name, value] : tensors_of(packed[1], "state()"))
        tensors.put(name, value.clone());
    });
  state(text)(tensors);
  if (!saving)
    under_gil("restore", [&] { object_.attr("_unpack")(text, torch_dict(&tensors)); });
}

// -- server without the averaging base --------------------------------------------------------------------------------

namespace {

class python_server final : public server_half {
public:
  explicit python_server(const python_method& method) : method_(method), object_(method, nb::none()) {}
  broadcast open_round(const round_info& info) override {
    object_.enter(info);
    auto extra = object_.opened();
    if (!object_.sends_weights())
      return {.extra = std::move(extra)};
    return {.weights = weights_only(object_.weights("weights")), .extra = std::move(extra)};
  }
  void fold(const delivery& in) override { object_.fold(in); }
  task<void> close_round(server_context& ctx, const round_info& info) override {
    auto closing = object_.close(ctx, info, weights_only(object_.weights("weights")));
    co_await closing;
  }
  predictor predict() const override {
    return {.net = method_.setup().net, .weights = weights_only(object_.weights("predict"))};
  }
  predictor predict_for(client_id client) const override {
    if (!object_.predicts_clients())
      return predict();
    return {.net = method_.setup().net, .weights = weights_only(object_.predicted_for(client))};
  }
  std::map<std::string, double> summary_metrics() const override { return object_.summary_metrics(); }
  void persist(archive& state) override { object_.persist(state); }

private:
  const python_method& method_;
  server_object object_;
};

class hosted_averaging_server;
/// Native functions that Python's AveragingServer calls.
struct averaging_host {
  hosted_averaging_server* server = nullptr; ///< Null after the server's destruction.
};

/// Averaging server whose steps a Python class may override. The other steps run natively.
class hosted_averaging_server final : public averaging_server {
public:
  explicit hosted_averaging_server(const python_method& method)
      : averaging_server(method.setup()), method_(method),
        host_(under_gil("a server", [&] { return nb::cast(averaging_host{this}); })), object_(method, host_),
        opens_(object_.overrides("open_round")), folds_(object_.overrides("fold")),
        closes_(object_.overrides("close_round")), predicts_(object_.overrides("predict")) {}
  ~hosted_averaging_server() override {
    const gil_scope held;
    nb::inst_ptr<averaging_host>(host_)->server = nullptr;
    host_.reset();
    shown_.reset();
  }

  broadcast open_round(const round_info& info) override {
    object_.enter(info);
    expect_unwritten();
    auto extra = opens_ ? object_.opened() : nullptr;
    auto sent = averaging_server::open_round(info);
    sent.extra = std::move(extra);
    if (!object_.sends_weights() && method_.setup().rounds.mode == round_mode::async)
      throw std::invalid_argument(
          "sends_weights = False, and an AveragingServer of an asynchronous run averages changes "
          "of the weights that it sent; expected a mneme.Server, or sends_weights = True");
    if (!object_.sends_weights())
      sent.weights = sent.initial_payload = nullptr;
    return sent;
  }
  void fold(const delivery& in) override {
    if (folds_)
      object_.fold(in);
    else
      fold_natively(in);
  }
  task<void> close_round(server_context& ctx, const round_info& info) override {
    if (closes_) {
      auto closing = object_.close(ctx, info, weights_only(weights()));
      co_await closing;
      expect_unwritten();
    } else {
      average();
    }
    others_.clear();
  }
  predictor predict() const override {
    if (!predicts_)
      return averaging_server::predict();
    return {.net = method_.setup().net, .weights = weights_only(object_.weights("predict"))};
  }
  predictor predict_for(client_id client) const override {
    if (!object_.predicts_clients())
      return predict();
    return {.net = method_.setup().net, .weights = weights_only(object_.predicted_for(client))};
  }
  std::map<std::string, double> summary_metrics() const override {
    auto figures = averaging_server::summary_metrics();
    for (const auto& [name, value] : object_.summary_metrics())
      figures[name] = value;
    return figures;
  }
  void persist(archive& state) override {
    averaging_server::persist(state);
    state(others_);
    object_.persist(state);
  }

  // Called by Python, with the GIL. Tensors other than the weights are averaged by name, with the same client weights.
  void fold_natively(const delivery& in) {
    const double weight = weight_of(in);
    if (in.upload->empty() && weight > 0.0)
      throw std::invalid_argument("an upload has neither weights nor tensors, so an AveragingServer cannot average it; "
                                  "expected mneme.Upload(weights, ...), or rows = 0 for a client without an update");
    auto learned = in;
    auto traveling = std::make_shared<tensor_map>();
    const auto known = method_.traveling().pick(weights());
    for (const auto& [name, value] : *in.upload)
      if (known->find(name))
        traveling->put(name, value);
      else if (weight > 0.0)
        others_[name].add(value.to(at::kFloat).flatten().contiguous(), weight);
    learned.upload = std::move(traveling);
    if (!learned.upload->empty())
      averaging_server::fold(learned);
  }
  nb::object shown_weights() {
    if (!shown_.is_valid() || !shown_of_.is_same(weights())) {
      shown_of_ = weights();
      shown_ = torch_object(shown_of_);
    }
    return shown_;
  }
  void assign_weights(const nb::object& value) {
    if (value.is(shown_) && was_written(value))
      throw std::invalid_argument(written_text);
    set_weights(flat_tensor_of(value, method_.setup().net->size(), "self.weights").clone());
  }
  /// Mean of the folded uploads, or the server's own weights if nothing was folded.
  nb::object mean(const std::string& name) {
    if (name == flat_weights) {
      const auto before = weights();
      average();
      const auto averaged = weights();
      set_weights(before);
      return torch_object(averaged);
    }
    const auto other = others_.find(name);
    if (other == others_.end() || other->second.empty())
      return nb::none();
    return torch_object(other->second.take());
  }

private:
  static constexpr const char* written_text = "self.weights was written into while clients may read it; create a new "
                                              "tensor, as in self.weights = self.weights + step";
  void expect_unwritten() const {
    under_gil("the server", [&] {
      if (shown_.is_valid() && was_written(shown_))
        throw std::invalid_argument(written_text);
    });
  }

  const python_method& method_;
  nb::object host_; // averaging_host
  server_object object_;
  bool opens_, folds_, closes_, predicts_;         // true: the user's class overrides the function
  std::map<std::string, weighted_average> others_; // averages of other tensors in the open round
  nb::object shown_;                               // Python object of the weights
  at::Tensor shown_of_;                            // engine tensor from which shown_ was made
};

/// Replaces a server whose constructor failed, so that the first step of the run fails with the reason.
class failed_server final : public server_half {
public:
  explicit failed_server(std::string reason) : reason_(std::move(reason)) {}
  task<task_plan> open_task(server_context&, const round_info&) override { fail(); }
  broadcast open_round(const round_info&) override { fail(); }
  void fold(const delivery&) override { fail(); }
  task<void> close_round(server_context&, const round_info&) override { fail(); }
  predictor predict() const override { fail(); }
  void persist(archive&) override { fail(); }

private:
  [[noreturn]] void fail() const { throw std::runtime_error(reason_); }
  std::string reason_;
};

hosted_averaging_server& alive(const averaging_host& host) {
  if (!host.server)
    throw std::invalid_argument("a server was used after its run");
  return *host.server;
}

} // namespace

std::unique_ptr<server_half> make_hosted_server(const python_method& method) {
  std::unique_ptr<server_half> made;
  const auto reason = exception_message_of([&] {
    made = under_gil("making the server", [&]() -> std::unique_ptr<server_half> {
      if (nb::cast<bool>(method.instance().attr("_averages")()))
        return std::make_unique<hosted_averaging_server>(method);
      return std::make_unique<python_server>(method);
    });
  });
  if (!made)
    made = std::make_unique<failed_server>(reason);
  return made;
}

void bind_servers(nb::module_& module) {
  nb::class_<averaging_host>(module, "_AveragingHost")
      .def_prop_rw(
          "weights", [](const averaging_host& h) { return alive(h).shown_weights(); },
          [](const averaging_host& h, nb::object value) { alive(h).assign_weights(value); })
      .def("mean", [](const averaging_host& h, const std::string& name) { return alive(h).mean(name); })
      .def("fold", [](const averaging_host& h, const delivery_view& in) { alive(h).fold_natively(in.live()); });
  nb::class_<delivery_view>(module, "Delivery", "An upload that arrived at the server.")
      .def_prop_ro("weights",
                   [](const delivery_view& v) {
                     const auto* const flat = v.live().upload->find(flat_weights);
                     return flat ? torch_object(*flat) : nb::none();
                   })
      .def("__getitem__",
           [](const delivery_view& v, const std::string& name) { return torch_object(v.live().upload->at(name)); })
      .def_prop_ro("tensors", [](const delivery_view& v) { return torch_dict(v.live().upload.get()); })
      .def_prop_ro("rows", [](const delivery_view& v) { return v.live().rows; })
      .def_prop_ro("client", [](const delivery_view& v) { return v.live().from.value; })
      .def_prop_ro("started_from", [](const delivery_view& v) { return v.live().started_from.value; })
      .def_prop_ro("staleness", [](const delivery_view& v) { return v.live().staleness; })
      .def_prop_ro("staleness_weight", [](const delivery_view& v) { return v.live().staleness_weight; });
  nb::class_<server_view> context(module, "ServerContext", "Inputs of a server's step, and its requests for jobs.");
  bind_job_functions(context);
  context
      .def(
          "rows_of",
          [](const server_view& v, nb::object images, nb::object labels) {
            return row_set{v.live().rows_of(tensor_of(images, "images"), tensor_of(labels, "labels")), nullptr};
          },
          "images"_a, "labels"_a)
      .def("rows_of_task", &server_view::rows_of_task, "task"_a,
           "All training rows of a task; only for methods with central_data = True.")
      .def(
          "warn", [](const server_view& v, const std::string& text) { v.live().warn(text); }, "text"_a)
      .def(
          "random",
          [](const server_view& v, std::uint64_t index) {
            const rng_key key{.seed = v.setup->seed,
                              .purpose = first_method_purpose + 1,
                              .task = v.info.task,
                              .visit = v.info.round.value,
                              .index = index};
            return random_stream{rng_stream(key)};
          },
          "index"_a = 0);
}

} // namespace mneme

#include "tools/python/engine/python_round.hpp"
#include <fmt/format.h>
#include <nanobind/stl/string.h>
namespace mneme {
namespace {

constexpr const char* where = "client_round";
constexpr const char* purity = "a client's half must be a pure function of its context and broadcast: only its memory "
                               "persists between rounds, and random numbers come from ctx.random()";

/// True for what a call of an `async def` function returns.
bool is_asynchronous(nb::handle value) { return nb::hasattr(value, "cr_frame") || nb::hasattr(value, "ag_frame"); }

} // namespace

void python_round::begin(const broadcast& in) {
  under_gil(where, [&] {
    broadcast_ = method_.view_of(in);
    const auto* const shown = nb::inst_ptr<broadcast_view>(broadcast_);
    const auto count = python_method::is_checked(in.info) ? 2 : 1;
    halves_.reserve(2);
    const auto owner = method_.owner_of(context_, in);
    for (auto i = 0; i < count; ++i) {
      auto view = nb::cast(client_view{.setup = &method_.setup(), .context = &context_, .in = shown, .owner = owner});
      halves_.push_back({.view = view, .run = generator_run(method_.client_function()(view, broadcast_), where)});
    }
    if (!is_over())
      advance({});
  });
}

python_round::~python_round() {
  const gil_scope held;
  for (auto& played : halves_)
    nb::inst_ptr<client_view>(played.view)->context = nullptr; // after this, accesses raise an error
  halves_.clear();
  broadcast_.reset();
}

void python_round::advance(const std::vector<work_output>& outputs) {
  for (auto& played : halves_) {
    const auto fresh = objects_of(outputs);
    played.results.insert(played.results.end(), fresh.begin(), fresh.end());
    played.run.advance(fresh);
  }
  expect_agreement();
  if (!is_over())
    stage_ = make_stage(halves_.front().run.jobs());
}

void python_round::resume(outcomes results) {
  const auto outputs = outputs_of(std::move(results), context_.next_job());
  under_gil(where, [&] { advance(outputs); });
}

void python_round::expect_agreement() const {
  if (halves_.size() < 2)
    return;
  const auto &a = halves_[0].run, &b = halves_[1].run;
  bool agrees = a.is_over() == b.is_over() && a.jobs().size() == b.jobs().size();
  for (std::size_t i = 0; agrees && i < a.jobs().size(); ++i)
    agrees = same_work(a.jobs()[i]->request, b.jobs()[i]->request);
  if (!agrees)
    throw a.error(
        fmt::format("run twice with the same context and broadcast, it requested different jobs; {}", purity));
}

client_result python_round::result() {
  return under_gil(where, [&] {
    auto first = result_of(halves_.front());
    if (halves_.size() > 1) {
      const auto second = result_of(halves_.back());
      if (!equal_bits(first.upload.get(), second.upload.get()) || first.rows != second.rows ||
          !equal_bits(first.memory.get(), second.memory.get()) || !(first.counts == second.counts))
        throw halves_.front().run.error(
            fmt::format("run twice with the same context and broadcast, it returned different uploads; {}", purity));
    }
    return first;
  });
}

void python_round::expect_unwritten(const half& played) const {
  const auto expect = [&](nb::handle object, const char* name) {
    if (object.is_valid() && !object.is_none() && was_written(object))
      throw played.run.error(fmt::format("wrote into {}, which is shared; create a new tensor, as in w = w + x", name));
  };
  const auto* const shown = nb::inst_ptr<broadcast_view>(broadcast_);
  expect(shown->weights_object, "broadcast.weights");
  for (auto [name, tensor] : nb::cast<nb::dict>(shown->tensors_object))
    expect(tensor, "a tensor of the broadcast");
  for (const auto& result : played.results)
    expect(nb::inst_ptr<job_result>(result)->weights, "the weights of a training job");
  if (const auto& memory = nb::inst_ptr<client_view>(played.view)->memory; memory.is_valid())
    for (auto [name, tensor] : nb::cast<nb::dict>(memory))
      expect(tensor, "the client's memory");
}

/// Weights that the engine passed to Python are returned without a copy.
tensors_ref python_round::weights_of(const half& played, const nb::object& weights) const {
  const auto* const shown = nb::inst_ptr<broadcast_view>(broadcast_);
  if (weights.is(shown->weights_object))
    return shown->weights;
  for (const auto& result : played.results)
    if (const auto* const known = nb::inst_ptr<job_result>(result); weights.is(known->weights))
      return std::get<train_output>(known->output).weights;
  return weights_only(flat_tensor_of(weights, method_.setup().net->size(), "Upload: weights"));
}

tensors_ref python_round::upload_of(const half& played, const upload_object& upload) const {
  tensors_ref sent;
  if (!upload.weights.is_none()) {
    sent = weights_of(played, upload.weights);
    if (!method_.traveling().whole())
      sent = method_.traveling().pick(sent->at(flat_weights));
  }
  if (upload.tensors.is_none())
    return sent ? sent : std::make_shared<const tensor_map>();
  auto tensors = sent ? std::make_shared<tensor_map>(*sent) : std::make_shared<tensor_map>();
  for (const auto& [name, value] : tensors_of(upload.tensors, "Upload: tensors"))
    tensors->put(name, value);
  return tensors;
}

client_result python_round::result_of(const half& played) const {
  const auto& value = played.run.value();
  upload_object* upload = nullptr;
  if (!nb::try_cast<upload_object*>(value, upload) || !upload)
    throw played.run.error(
        fmt::format("returned {}; expected mneme.Upload(weights, rows=...){}",
                    nb::cast<std::string>(nb::repr(value)).substr(0, 100),
                    is_asynchronous(value) ? ", from a function defined by def, not async def" : ""));
  expect_unwritten(played);
  client_result result;
  try {
    result.upload = upload_of(played, *upload);
    if (!upload->memory.is_none())
      result.memory = std::make_shared<const tensor_map>(tensors_of(upload->memory, "Upload: memory"));
  } catch (const std::invalid_argument& error) {
    throw played.run.error(error.what());
  }
  result.rows = upload->rows.value_or(context_.samples().size());
  if (result.rows < 0)
    throw played.run.error(fmt::format("Upload: rows = {}; expected 0 or more", result.rows));
  if (!upload->counts.is_none()) {
    client_counts::by_name counts;
    for (auto [name, count] : nb::cast<nb::dict>(upload->counts))
      counts[nb::cast<std::string>(name)] = nb::cast<double>(count);
    result.counts = client_counts(std::move(counts));
  }
  return result;
}

} // namespace mneme

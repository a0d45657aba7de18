#include "tools/python/engine/client_view.hpp"
#include <ATen/ATen.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
namespace mneme {

using nb::literals::operator""_a;

bool broadcast_view::is_of(const broadcast& in) const {
  return sent.weights == in.weights && sent.extra == in.extra && sent.advice == in.advice &&
         sent.initial_payload == in.initial_payload && sent.info.round == in.info.round &&
         sent.info.task == in.info.task;
}

const client_context& client_view::live() const {
  if (!context)
    throw std::invalid_argument("the context of a client's round was used after the end of the round");
  return *context;
}

job_defaults client_view::world() const {
  const auto& ctx = live();
  return {.setup = setup,
          .info = in->sent.info,
          .start = in->weights,
          .start_object = in->weights_object,
          .samples = ctx.samples(),
          .owner = owner,
          .stream = ctx.training_stream()};
}

namespace {

nb::object range_of(class_range classes) {
  return nb::steal(PyObject_CallFunction(reinterpret_cast<PyObject*>(&PyRange_Type), "LL",
                                         static_cast<long long>(classes.low), static_cast<long long>(classes.high)));
}

constexpr std::uint32_t python_draw = first_method_purpose; // random stream of ctx.random()

void bind_random(nb::module_& module) {
  nb::class_<random_stream>(module, "Random", "Keyed random numbers: the same in every run, on any thread.")
      .def(
          "bits", [](random_stream& r) { return r.stream.bits64(); }, "64 uniform bits.")
      .def(
          "uniform", [](random_stream& r) { return r.stream.uniform(); }, "Uniform in [0, 1).")
      .def(
          "normal", [](random_stream& r) { return r.stream.normal(); }, "Standard normal.")
      .def(
          "integer",
          [](random_stream& r, std::int64_t below) {
            if (below < 1)
              throw std::invalid_argument("Random.integer(below): expected below >= 1");
            return r.stream.below(static_cast<std::uint64_t>(below));
          },
          "below"_a, "Uniform in 0 .. below - 1.")
      .def(
          "permutation",
          [](random_stream& r, std::int64_t count) {
            if (count < 0)
              throw std::invalid_argument("Random.permutation(count): expected count >= 0");
            auto order = at::arange(count, at::kLong);
            r.stream.shuffle(std::span(order.mutable_data_ptr<std::int64_t>(), static_cast<std::size_t>(count)));
            return torch_object(order);
          },
          "count"_a, "[count] int64: 0 .. count - 1 in random order.");
}

/// Raises a DeprecationWarning at the caller's line. Throws if the user has made warnings errors.
void warn_of_old_name(const char* old_name, const char* name) {
  if (PyErr_WarnFormat(PyExc_DeprecationWarning, 1, "RoundInfo.%s is deprecated; use %s", old_name, name) < 0)
    throw nb::python_error();
}

void bind_place(nb::module_& module) {
  nb::class_<round_info>(module, "RoundInfo", "The position of a round in the run; tasks and rounds count from 0.")
      .def_prop_ro("round", [](const round_info& p) { return p.round.value; })
      .def_prop_ro("task", [](const round_info& p) { return p.task.value; })
      .def_ro("round_of_task", &round_info::round_of_task)
      .def_ro("rounds_of_task", &round_info::rounds_of_task)
      .def_prop_ro(
          "seen_classes", [](const round_info& p) { return range_of(p.seen_classes); },
          "Classes of tasks opened so far.")
      .def_prop_ro(
          "current_classes", [](const round_info& p) { return range_of(p.current_classes); }, "Classes of this task.")
      .def_prop_ro(
          "opened",
          [](const round_info& p) {
            warn_of_old_name("opened", "seen_classes");
            return range_of(p.seen_classes);
          },
          "Deprecated: seen_classes.")
      .def_prop_ro(
          "current",
          [](const round_info& p) {
            warn_of_old_name("current", "current_classes");
            return range_of(p.current_classes);
          },
          "Deprecated: current_classes.");
}

} // namespace

void bind_client_view(nb::module_& module) {
  bind_random(module);
  bind_place(module);
  nb::class_<broadcast_view>(module, "Broadcast", "The server's message to all clients of a round.")
      .def_ro("weights", &broadcast_view::weights_object, "[P] float32, read-only: all weights of the net.")
      .def_ro("tensors", &broadcast_view::tensors_object, "Additional tensors of the broadcast, by name; read-only.")
      .def("__getitem__", [](const broadcast_view& in, nb::object name) { return nb::object(in.tensors_object[name]); })
      .def_prop_ro("place", [](const broadcast_view& in) { return in.sent.info; });
  nb::class_<client_view> context(module, "ClientContext", "Inputs of a client's round, and its requests for jobs.");
  bind_job_functions(context);
  context.def_prop_ro("client", [](const client_view& v) { return v.live().self().value; })
      .def_prop_ro("place", [](const client_view& v) { return v.in->sent.info; })
      .def_prop_ro("rows",
                   [](const client_view& v) {
                     return row_set{v.live().samples(), v.owner};
                   })
      .def_prop_ro(
          "memory",
          [](client_view& v) {
            if (!v.memory.is_valid())
              v.memory = torch_dict(&v.live().memory());
            return v.memory;
          },
          "The client's memory from its last delivered round, by name; read-only.")
      .def(
          "rows_of",
          [](const client_view& v, nb::object images, nb::object labels) {
            return row_set{v.live().rows_of(tensor_of(images, "images"), tensor_of(labels, "labels")), nullptr};
          },
          "images"_a, "labels"_a, "Rows of received or generated images and labels, for jobs.")
      .def(
          "random",
          [](const client_view& v, std::uint64_t index) {
            auto key = v.live().stream(python_draw);
            key.index = index;
            return random_stream{rng_stream(key)};
          },
          "index"_a = 0, "A separate random stream for every round of every client.");
  nb::class_<upload_object>(module, "Upload", "The result of a client's round.")
      .def(
          "__init__",
          [](upload_object* self, nb::object weights, nb::object tensors, std::optional<std::int64_t> rows,
             nb::object memory, nb::object counts) {
            new (self)
                upload_object{std::move(weights), std::move(tensors), std::move(memory), std::move(counts), rows};
          },
          "weights"_a = nb::none(), "tensors"_a = nb::none(), "rows"_a = nb::none(), "memory"_a = nb::none(),
          "counts"_a = nb::none());
}

} // namespace mneme

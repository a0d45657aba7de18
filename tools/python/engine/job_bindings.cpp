#include "tools/python/engine/job_requests.hpp"
#include "tools/python/engine/torch_tensors.hpp"
#include <ATen/core/Tensor.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
namespace mneme {
namespace {

using nb::literals::operator""_a;

loss_object object_of(objective_terms terms) {
  auto objective = objective_of(terms);
  return {.terms = std::move(terms), .objective = std::move(objective)};
}

/// Converts a Python or NumPy number to double. Throws nb::type_error for other types.
double factor_of(nb::handle value) {
  const bool is_number = !PyBool_Check(value.ptr()) && !PyUnicode_Check(value.ptr()) && PyNumber_Check(value.ptr()) &&
                         !nb::isinstance<loss_object>(value);
  const double factor = is_number ? PyFloat_AsDouble(value.ptr()) : 0.0;
  if (!is_number || PyErr_Occurred()) {
    PyErr_Clear();
    throw nb::type_error(("a loss times " + nb::cast<std::string>(nb::repr(value)).substr(0, 100) +
                          "; expected a number, as in 0.5 * mneme.cross_entropy()")
                             .c_str());
  }
  return factor;
}

loss_object times(const loss_object& loss, nb::handle factor) { return object_of(loss.terms.times(factor_of(factor))); }

loss_object plus(const loss_object& loss, nb::handle other) {
  loss_object* more = nullptr;
  if (!nb::try_cast<loss_object*>(other, more) || !more)
    throw nb::type_error(("a loss plus " + nb::cast<std::string>(nb::repr(other)).substr(0, 100) +
                          "; expected a loss: mneme.loss(function) makes one of a function")
                             .c_str());
  return object_of(loss.terms.plus(more->terms));
}

/// Implements 0 + loss, because Python's sum(losses) starts with 0.
loss_object plus_from_left(const loss_object& loss, nb::handle other) {
  if (PyLong_Check(other.ptr()) && !PyBool_Check(other.ptr()) && nb::cast<std::int64_t>(other) == 0)
    return loss;
  return plus(loss, other);
}

void bind_losses(nb::module_& module) {
  nb::class_<loss_object>(module, "Loss",
                          "An objective of training: terms, each once, with a factor. a + b has the terms of both; "
                          "0.5 * a multiplies every term.")
      .def("__repr__", [](const loss_object& loss) { return "<mneme loss '" + loss.terms.text() + "'>"; })
      .def("__add__", &plus, nb::arg("other").none())
      .def("__radd__", &plus_from_left, nb::arg("other").none())
      .def("__mul__", &times, nb::arg("factor").none())
      .def("__rmul__", &times, nb::arg("factor").none())
      .def(
          "__truediv__",
          [](const loss_object& loss, nb::handle by) { return object_of(loss.terms.times(1.0 / factor_of(by))); },
          "divisor"_a)
      .def("_content", [](const loss_object& loss) {
        nb::list written;
        for (const auto& term : loss.terms.written)
          written.append(nb::make_tuple(term.loss->function().call, term.factor));
        for (const auto& term : loss.terms.quadratic)
          written.append(
              nb::make_tuple(nb::make_tuple(torch_object(term.anchor), torch_object(term.importance)), term.factor));
        auto native = loss.terms;
        native.written.clear();
        return nb::make_tuple(native.text(), written);
      });
  module.attr("_cross_entropy") = nb::cast(object_of({.cross_entropy = 1.0}));
  module.def(
      "proximal", [](double mu) { return object_of(proximal_terms(mu)); }, "mu"_a,
      "Cross-entropy + mu / 2 |w - start|^2 (Li et al. 2020, eq. 2).");
  module.def(
      "corrected", [] { return object_of(corrected_terms()); },
      "Cross-entropy; each step's gradient gains side['correction'] [P] (Karimireddy et al. 2020, eq. 3).");
  module.def(
      "distillation",
      [](double weight, double temperature) { return object_of(distillation_terms(weight, temperature)); },
      "weight"_a = 1.0, "temperature"_a = 2.0,
      "weight * cross-entropy between teacher and net at a temperature, over the classes `taught` (Li and Hoiem 2018, "
      "eqs. 2 and 3); a sum's part, as in cross_entropy() + distillation().");
  module.def(
      "quadratic",
      [](nb::handle anchor, nb::handle importance) {
        const auto given = [](nb::handle value, const char* name) {
          return value.is_none() ? at::Tensor{} : tensor_of(value, std::string("mneme.quadratic(): ") + name);
        };
        auto anchor_tensor = given(anchor, "anchor"), importance_tensor = given(importance, "importance");
        if (!importance_tensor.defined())
          throw std::invalid_argument("mneme.quadratic(): importance = None; expected float32 [P], one number of each "
                                      "weight");
        return object_of(quadratic_terms(std::move(anchor_tensor), std::move(importance_tensor)));
      },
      nb::arg("anchor").none(), nb::arg("importance").none(),
      "1/2 sum_i importance_i (w_i - anchor_i)^2 with tensors [P] (Kirkpatrick et al. 2017, eq. 3), fused over "
      "clients; "
      "anchor None: the job's start weights. A sum's part, as in cross_entropy() + 100 * quadratic(anchor, fisher).");
  module.def(
      "_python_loss",
      [](nb::object function, nb::object batched, const std::string& name, const std::string& identity,
         std::vector<std::string> arguments) {
        objective_terms terms;
        terms.written.push_back(
            {.loss = std::make_shared<const python_loss>(
                 python_function{std::move(function), std::move(batched), name, std::move(arguments)}, identity)});
        return object_of(std::move(terms));
      },
      nb::arg("function"), nb::arg("batched").none(), nb::arg("name"), nb::arg("identity"), nb::arg("arguments"));
}

template <class Output>
const Output& output_as(const job_result& result) {
  const auto* const output = std::get_if<Output>(&result.output);
  if (!output)
    throw nb::attribute_error("this outcome is of another kind of job and has no such attribute");
  return *output;
}

nb::object shown_weights(job_result& result) {
  const auto& trained = output_as<train_output>(result);
  if (!result.weights.is_valid())
    result.weights = trained.weights ? torch_object(trained.weights->at(flat_weights)) : nb::none();
  return result.weights;
}

std::int64_t rows_of_result(const job_result& result) {
  if (const auto* const evaluated = std::get_if<evaluate_output>(&result.output))
    return evaluated->rows;
  return output_as<train_output>(result).rows_seen;
}

double loss_of_result(const job_result& result) {
  if (const auto* const evaluated = std::get_if<evaluate_output>(&result.output))
    return evaluated->rows > 0 ? evaluated->loss_sum / static_cast<double>(evaluated->rows) : 0.0;
  return output_as<train_output>(result).loss_mean;
}

void bind_results(nb::module_& module) {
  nb::class_<job_result>(module, "Outcome", "The outcome of a job.")
      .def_prop_ro("weights", &shown_weights, "Trained weights [P] float32; None for other results.")
      .def_prop_ro("rows", &rows_of_result,
                   "Number of rows of the job, not multiplied by its epochs: the upload's weight.")
      .def_prop_ro("loss", &loss_of_result, "Mean loss per row of the last epoch, or of an evaluation.")
      .def_prop_ro("loss_terms", [](const job_result& r) { return output_as<train_output>(r).loss_terms(); })
      .def_prop_ro(
          "gradients", [](const job_result& r) { return torch_object(output_as<train_output>(r).gradients); },
          "[P] float32, of result='gradient' and 'squared-gradients'.")
      .def_prop_ro(
          "row_norms", [](const job_result& r) { return torch_object(output_as<train_output>(r).row_norms); },
          "[n] float64, of result='row-norms'.")
      .def_prop_ro(
          "features", [](const job_result& r) { return torch_object(output_as<extract_output>(r).features); },
          "[n, D] float32, of ctx.extract().")
      .def_prop_ro(
          "logits", [](const job_result& r) { return torch_object(output_as<extract_output>(r).logits); },
          "[n, C] float32, of ctx.extract().")
      .def_prop_ro(
          "labels", [](const job_result& r) { return torch_object(output_as<extract_output>(r).labels); },
          "[n] int64, of ctx.extract().")
      .def_prop_ro(
          "gram", [](const job_result& r) { return torch_object(output_as<statistics_output>(r).gram); },
          "Packed triangle of H^T H, float64, of ctx.statistics().")
      .def_prop_ro(
          "sums", [](const job_result& r) { return torch_object(output_as<statistics_output>(r).sums); },
          "[1, C, D] float64: sums of features by class.")
      .def_prop_ro(
          "counts", [](const job_result& r) { return torch_object(output_as<statistics_output>(r).counts); },
          "[1, C] float64: rows by class.")
      .def_prop_ro("correct", [](const job_result& r) { return output_as<evaluate_output>(r).correct; })
      .def_prop_ro(
          "accuracy",
          [](const job_result& r) {
            const auto& told = output_as<evaluate_output>(r);
            return told.rows > 0 ? 100.0 * static_cast<double>(told.correct) / static_cast<double>(told.rows) : 0.0;
          },
          "Percent.");
}

} // namespace

void bind_jobs(nb::module_& module) {
  nb::class_<job_request>(module, "Job", "The description of a job; `yield` it to run it.")
      .def("__getattr__", [](const job_request&, const std::string& name) -> nb::object {
        throw nb::attribute_error(("a job has no '" + name +
                                   "', since it has not run; expected a yield before it, as in `trained = yield "
                                   "ctx.train(...)`")
                                      .c_str());
      });
  nb::class_<row_set>(module, "Rows", "Rows of a data set, for jobs.")
      .def("__len__", &row_set::size)
      .def_prop_ro(
          "numbers", [](const row_set& rows) { return torch_object(rows.numbers()); },
          "[n] int64: row numbers, fixed for the whole run.")
      .def_prop_ro(
          "labels", [](const row_set& rows) { return torch_object(rows.labels()); }, "[n] int64")
      .def_prop_ro(
          "inputs", [](const row_set& rows) { return torch_object(rows.inputs()); },
          "[n, C, H, W] float32: the rows as the net receives them, normalized and without augmentation.")
      .def("pick", &row_set::pick, nb::arg("numbers").none(),
           "The rows with these numbers, in this order: a client's own, of this task or an earlier one.")
      .def("at", &row_set::at, nb::arg("positions").none(),
           "The rows at these positions of the set (-1 is the last), or where a mask of bools is true.");
  bind_losses(module);
  bind_results(module);
}

} // namespace mneme

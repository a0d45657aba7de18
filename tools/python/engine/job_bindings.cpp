#include "tools/python/engine/job_requests.hpp"
#include "tools/python/engine/native_losses.hpp"
#include "tools/python/engine/python_loss.hpp"
#include <ATen/core/Tensor.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
namespace mneme {
namespace {

using nb::literals::operator""_a;

loss_object proximal(double mu) {
  if (!(mu >= 0.0))
    throw std::invalid_argument("mneme.proximal(mu): expected mu >= 0");
  return {proximal_objective(mu)};
}

template <class Output>
const Output& output_as(const job_result& result) {
  const auto* const output = std::get_if<Output>(&result.output);
  if (!output)
    throw nb::attribute_error("a job of another kind ended so: this outcome has no such figure");
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
  nb::class_<job_result>(module, "Outcome", "What a job ended with.")
      .def_prop_ro("weights", &shown_weights, "Weights [P] float32 that a training has made; None of other results.")
      .def_prop_ro("rows", &rows_of_result, "Rows of the job, whatever its epochs: the upload's weight.")
      .def_prop_ro("loss", &loss_of_result, "Mean loss of the last epoch, or of an evaluation.")
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
  nb::class_<job_request>(module, "Job", "A job that was described; `yield` asks for it.");
  nb::class_<row_set>(module, "Rows", "Rows of a data set that jobs may read.")
      .def("__len__", [](const row_set& rows) { return rows.samples.size(); })
      .def_prop_ro(
          "numbers", [](const row_set& rows) { return torch_object(rows.numbers()); },
          "[n] int64: the same number is the same row for the whole run.")
      .def_prop_ro(
          "labels", [](const row_set& rows) { return torch_object(rows.labels()); }, "[n] int64")
      .def(
          "pick", [](const row_set& rows, nb::object numbers) { return rows.pick(tensor_of(numbers, "numbers")); },
          "numbers"_a, "The rows of the data set with these numbers.");
  nb::class_<loss_object>(module, "Loss", "An objective of training; a + b is their sum.")
      .def("__repr__", [](const loss_object& loss) { return "<mneme loss '" + loss.objective->identity() + "'>"; })
      .def(
          "__add__",
          [](const loss_object& a, const loss_object& b) {
            return loss_object{added_losses(a.objective, b.objective)};
          },
          "other"_a, nb::is_operator());
  const loss_object plain{cross_entropy_objective()};
  module.attr("_cross_entropy") = nb::cast(plain);
  module.def("proximal", &proximal, "mu"_a, "Cross-entropy + mu / 2 |w - start|^2 (Li et al. 2020, eq. 2).");
  module.def(
      "corrected", [] { return loss_object{corrected_objective()}; },
      "Cross-entropy; each step's gradient gains side['correction'] [P] (Karimireddy et al. 2020, eq. 3).");
  module.def(
      "distillation",
      [](double weight, double temperature) { return loss_object{distilling_objective(weight, temperature)}; },
      "weight"_a = 1.0, "temperature"_a = 2.0,
      "weight * cross-entropy between teacher and net at a temperature, over the classes `taught` (Li and Hoiem 2018, "
      "eqs. 2 and 3); a sum's part, as in cross_entropy() + distillation().");
  module.def("_python_loss", [](nb::object function, const std::string& name, const std::string& digest) {
    return loss_object{std::make_shared<const python_loss>(std::move(function), name, digest)};
  });
  bind_results(module);
}

} // namespace mneme

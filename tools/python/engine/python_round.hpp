/// python_round: one round of a client half that is written as a Python generator.
#pragma once
#include "tools/python/engine/generator_run.hpp"
#include "tools/python/engine/python_method.hpp"
namespace mneme {

/// Acquires the GIL when needed. In the first rounds the generator runs twice, and both runs must yield the same jobs
/// and results. This detects dependence on a clock, a counter or an unseeded random number generator.
class python_round {
public:
  python_round(const python_method& method, client_context& ctx) : method_(method), context_(ctx) {}
  ~python_round();
  python_round(const python_round&) = delete;
  python_round& operator=(const python_round&) = delete;

  /// Runs the generator to its first jobs or to its end. Must be called once, as the first function.
  void begin(const broadcast& in);
  [[nodiscard]] bool is_over() const { return halves_.front().run.is_over(); }
  [[nodiscard]] plan take_stage() { return std::move(stage_); }
  void resume(outcomes results);
  [[nodiscard]] client_result result();

private:
  struct half {
    nb::object view; // client_view
    generator_run run;
    std::vector<nb::object> results{}; // job_result objects of all stages so far
  };
  void advance(const std::vector<work_output>& outputs);
  void expect_agreement() const;
  void expect_unwritten(const half& played) const;
  [[nodiscard]] client_result result_of(const half& played) const;
  [[nodiscard]] tensors_ref upload_of(const half& played, const upload_object& upload) const;
  [[nodiscard]] tensors_ref weights_of(const half& played, const nb::object& weights) const;

  const python_method& method_;
  client_context& context_;
  nb::object broadcast_; // broadcast_view
  std::vector<half> halves_;
  plan stage_;
};

} // namespace mneme

/// python_server: adapts a server half written in Python, with or without the averaging base.
#pragma once
#include "tools/python/engine/generator_run.hpp"
#include "tools/python/engine/python_method.hpp"
namespace mneme {

/// An upload as Python's fold() receives it; valid during the call.
struct delivery_view {
  const delivery* in = nullptr; ///< Null after the call.
  [[nodiscard]] const delivery& live() const;
};

/// Context of a server step.
struct server_view {
  const method_setup* setup = nullptr;
  server_context* context = nullptr; ///< Null outside a step.
  round_info info{};
  tensors_ref start{};                ///< Default initial weights of jobs [P]; may be null.
  bool server_trains_on_rows = false; ///< true: the method declares that its server reads training rows.
  std::shared_ptr<const row_owner> owner = std::make_shared<const row_owner>();
  [[nodiscard]] server_context& live() const;
  [[nodiscard]] job_defaults world() const;
  /// Returns all training rows of a task. Throws std::invalid_argument for an unknown task, and if
  /// `server_trains_on_rows` is false.
  [[nodiscard]] row_set rows_of_task(std::int64_t task) const;
};

/// Python's server object, with the operations common to both kinds of servers. Acquires the GIL when needed.
class server_object {
public:
  /// @param host object with the native functions for Python, or None
  server_object(const python_method& method, nb::object host);
  ~server_object();
  server_object(const server_object&) = delete;
  server_object& operator=(const server_object&) = delete;

  /// True if the user's class overrides the package's function.
  [[nodiscard]] bool overrides(const char* name) const;
  /// Sets Python's self.place for all later calls.
  void enter(const round_info& info);
  /// Tensors that Python's open_round() adds to the broadcast; null if there are none.
  [[nodiscard]] tensors_ref opened() const;
  void fold(const delivery& in) const;
  /// Runs close_round() and the jobs that it yields.
  [[nodiscard]] task<void> close(server_context& ctx, const round_info& info, tensors_ref start);
  /// Returns weights [P] from Python's self.weights, or from the result of predict(). The returned weights are
  /// immutable: tensors that Python can modify are copied. @param attribute name of the source in errors
  [[nodiscard]] at::Tensor weights(const char* attribute) const;
  /// Returns weights [P] from Python's predict(client). Call it only if predicts_clients() is true.
  [[nodiscard]] at::Tensor predicted_for(client_id client) const;
  /// True if the user's predict() has a parameter `client`.
  [[nodiscard]] bool predicts_clients() const noexcept { return predicts_clients_; }
  /// True if broadcasts contain the server's weights (Server.sends_weights).
  [[nodiscard]] bool sends_weights() const noexcept { return sends_weights_; }
  [[nodiscard]] std::map<std::string, double> summary_metrics() const;
  void persist(archive& state);

private:
  const python_method& method_;
  nb::object object_;
  bool predicts_clients_ = false, sends_weights_ = true;
  std::optional<round_info> info_;       // position of the current round; nullopt before the first
  mutable at::Tensor frozen_;            // copy of the weights that Python holds
  mutable const void* copied_ = nullptr; // address of the copied tensor
  mutable std::int64_t version_ = 0;     // version of the copied tensor
};

[[nodiscard]] std::unique_ptr<server_half> make_hosted_server(const python_method& method);
void bind_servers(nb::module_& module);

} // namespace mneme

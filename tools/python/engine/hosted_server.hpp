/// hosted_server: a server half written in Python, by itself or on top of the averaging one.
#pragma once
#include "tools/python/engine/generator_run.hpp"
#include "tools/python/engine/hosted_method.hpp"
namespace mneme {

/// An upload as Python's fold() is shown it. Valid during the call.
struct delivery_view {
  const delivery* in = nullptr; ///< Null: the call is over.
  [[nodiscard]] const delivery& live() const;
};

/// What a server's step may see and ask for.
struct server_view {
  const method_setup* setup = nullptr;
  server_context* context = nullptr; ///< Null: no step is going on.
  round_place place{};
  tensors_ref start{};       ///< Weights that its jobs begin with; may be null.
  bool central_data = false; ///< The method declares that its server reads training rows.
  std::shared_ptr<const row_owner> owner = std::make_shared<const row_owner>();
  [[nodiscard]] server_context& live() const;
  [[nodiscard]] job_world world() const;
  /// All training rows of a task. Throws std::invalid_argument for a task that there is not, and unless `central_data`.
  [[nodiscard]] row_set rows_of_task(std::int64_t task) const;
};

/// The object of Python's server half, with what both kinds of servers do alike. Takes the GIL for itself.
class server_object {
public:
  /// @param host what Python's side calls back, or None
  server_object(const hosted_method& method, nb::object host);
  ~server_object();
  server_object(const server_object&) = delete;
  server_object& operator=(const server_object&) = delete;

  /// True if the user's class has a function of its own in place of the package's.
  [[nodiscard]] bool overrides(const char* name) const;
  /// Python's self.place, which all later calls read.
  void enter(const round_place& place);
  /// The tensors that open_round() adds to the broadcast; null: none.
  [[nodiscard]] tensors_ref opened() const;
  void fold(const delivery& in) const;
  /// close_round(), with the jobs that it yields.
  [[nodiscard]] task<void> close(server_context& ctx, const round_place& place, tensors_ref start);
  /// Weights [P] that Python keeps as self.weights, or answers predict() with. Frozen: what Python writes into is
  /// copied.
  [[nodiscard]] at::Tensor weights(const char* attribute) const;
  [[nodiscard]] std::map<std::string, double> figures() const;
  void persist(archive& state);

private:
  const hosted_method& method_;
  nb::object object_;
  std::optional<round_place> place_;     // of the newest round; nullopt before the first one
  mutable at::Tensor frozen_;            // a copy of the weights that Python holds,
  mutable const void* copied_ = nullptr; // of which this is the tensor,
  mutable std::int64_t version_ = 0;     // at this version
};

[[nodiscard]] std::unique_ptr<server_half> make_hosted_server(const hosted_method& method);
void bind_servers(nb::module_& module);

} // namespace mneme

/// python_method: adapts a method written in Python to the engine's strategy interface.
#pragma once
#include "runtime/population/client_rows_user.hpp"
#include "tools/python/engine/client_view.hpp"
#include <deque>
#include <map>
#include <variant>
namespace mneme {

/// Value of a key of a Python method.
using hosted_value = std::variant<bool, std::int64_t, double, std::string, std::vector<std::int64_t>,
                                  std::vector<double>, std::vector<std::string>>;

/// A strategy whose halves are Python objects. The GIL is held while the halves run, but never while jobs are computed.
class python_method final : public strategy, public client_rows_user {
public:
  /// @param type subclass of mneme.Method
  explicit python_method(nb::object type);
  ~python_method() override;
  python_method(const python_method&) = delete;
  python_method& operator=(const python_method&) = delete;

  void keys(key_table& table) override;
  [[nodiscard]] std::vector<preset> presets() const override { return presets_; }
  [[nodiscard]] method_needs needs() const override { return needs_; }
  [[nodiscard]] upload_content uploads() const override { return uploads_; }
  [[nodiscard]] diagnostics check(const method_setup& setup) const override;
  [[nodiscard]] bool uploads_models() const override { return true; } // true, because a run checks each upload
  void prepare(const method_setup& setup) override;
  task<client_result> client_round(client_context& ctx, const broadcast& in) const override;
  [[nodiscard]] std::unique_ptr<server_half> make_server() const override;
  void set_client_rows(const std::shared_ptr<const client_rows>& rows) override { client_rows_ = rows; }

  // Functions for the halves of the method. They require the GIL.
  [[nodiscard]] const method_setup& setup() const { return setup_; }
  [[nodiscard]] const transmitted_weights& traveling() const { return transmitted_; }
  /// Instance of the user's class. @pre prepare() was called
  [[nodiscard]] const nb::object& instance() const { return instance_; }
  [[nodiscard]] const nb::object& client_function() const { return client_function_; }
  /// Python object of the broadcast, shared by all clients of a round.
  [[nodiscard]] nb::object view_of(const broadcast& in) const;
  /// Owner of the rows that the client may select in this round.
  [[nodiscard]] std::shared_ptr<const row_owner> owner_of(const client_context& ctx, const broadcast& in) const;
  /// True in the first rounds. In these rounds each client half runs twice, and both results must be equal.
  [[nodiscard]] static bool is_checked(const round_info& info);

private:
  void bind_key(key_table& table, nb::handle described);
  [[nodiscard]] nb::object make_instance() const;

  nb::object type_, instance_, client_function_;
  std::string name_;
  std::string source_digest_, source_; // digest of the class's source now, and digest in the scenario
  bool allows_source_change_ = false;  // true: the two may differ, because the user has changed the source
  std::map<std::string, hosted_value> values_;
  std::vector<preset> presets_;
  method_needs needs_;
  upload_content uploads_ = upload_content::other; // `weights` if the server averages all tensors of an upload
  method_setup setup_;
  std::weak_ptr<const client_rows> client_rows_; // training rows of the run
  transmitted_weights transmitted_;
  mutable std::deque<nb::object> views_; // broadcast_view objects, newest last; guarded by the GIL
};

/// Registers the class under its name in this process, replacing an earlier one.
void host_method(nb::object type);
/// Binds the method setup for Python.
void bind_method_setup(nb::module_& module);
[[nodiscard]] nb::object setup_object(const method_setup& setup);

} // namespace mneme

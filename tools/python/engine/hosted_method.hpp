/// hosted_method: a method written in Python as the engine knows methods.
#pragma once
#include "runtime/population/client_rows_user.hpp"
#include "tools/python/engine/client_view.hpp"
#include <deque>
#include <map>
#include <variant>
namespace mneme {

/// The value of one of its keys.
using hosted_value = std::variant<bool, std::int64_t, double, std::string, std::vector<std::int64_t>,
                                  std::vector<double>, std::vector<std::string>>;

/// Its halves run under the interpreter's lock while they decide, and never while anything is computed.
class hosted_method final : public strategy, public client_rows_user {
public:
  /// @param type the class, a subclass of mneme.Method
  explicit hosted_method(nb::object type);
  ~hosted_method() override;
  hosted_method(const hosted_method&) = delete;
  hosted_method& operator=(const hosted_method&) = delete;

  void keys(key_table& table) override;
  [[nodiscard]] std::vector<preset> presets() const override { return presets_; }
  [[nodiscard]] method_needs needs() const override { return needs_; }
  [[nodiscard]] diagnostics check(const method_setup& setup) const override;
  void prepare(const method_setup& setup) override;
  task<client_result> client_round(client_context& ctx, const broadcast& in) const override;
  [[nodiscard]] std::unique_ptr<server_half> make_server() const override;
  void set_client_rows(const std::shared_ptr<const client_rows>& rows) override { client_rows_ = rows; }

  // For its halves, which hold the GIL:
  [[nodiscard]] const method_setup& setup() const { return setup_; }
  [[nodiscard]] const travelling_weights& travelling() const { return travelling_; }
  /// The object whose class the user wrote. @pre prepare() was called
  [[nodiscard]] const nb::object& instance() const { return instance_; }
  [[nodiscard]] const nb::object& client_function() const { return client_function_; }
  /// The broadcast as Python is shown it: one object for all clients of a round.
  [[nodiscard]] nb::object view_of(const broadcast& in) const;
  /// The client of a round, which names rows.
  [[nodiscard]] std::shared_ptr<const row_owner> owner_of(const client_context& ctx, const broadcast& in) const;
  /// True in the first rounds, whose clients' halves run twice and have to agree.
  [[nodiscard]] static bool is_checked(const round_place& place);

private:
  void bind_key(key_table& table, nb::handle described);
  [[nodiscard]] nb::object made_instance() const;

  nb::object type_, instance_, client_function_;
  std::string name_;
  std::string source_digest_, source_; // of the class, and what the scenario says
  bool is_mended_ = false;             // they may differ
  std::map<std::string, hosted_value> values_;
  std::vector<preset> presets_;
  method_needs needs_;
  method_setup setup_;
  std::weak_ptr<const client_rows> client_rows_; // of the run
  travelling_weights travelling_;
  mutable std::deque<nb::object> views_; // broadcast_view, the newest last; the GIL guards it
};

/// Registers the class under its name for this process, in place of an earlier one.
void host_method(nb::object type);
/// What Python sees of a setup.
void bind_method_setup(nb::module_& module);
[[nodiscard]] nb::object setup_object(const method_setup& setup);

} // namespace mneme

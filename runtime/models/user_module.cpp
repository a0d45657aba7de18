#include "runtime/models/user_module.hpp"
namespace mneme {
namespace {

/// A function-local static, because registrations run before main(). Empty if the optional part is not linked.
module_support& registered_support() {
  static module_support support;
  return support;
}

constexpr const char* no_modules = "this build cannot load modules; build with MNEME_MODULES=ON, or use a net of mneme";

} // namespace

row_form form_of_rows(const std::array<std::int64_t, 3>& shape, std::int64_t tokens) {
  if (tokens > 0)
    return row_form::tokens;
  return shape[0] == 1 && shape[1] == 1 ? row_form::numbers : row_form::images;
}

expected<std::shared_ptr<const user_module>> load_user_module(const std::filesystem::path& file,
                                                              const module_requirements& requirements) {
  const auto& support = registered_support();
  if (support.load == nullptr)
    return failed(file.string(), no_modules);
  return support.load(file, requirements);
}

expected<module_layers> layers_of_module(const std::filesystem::path& file) {
  const auto& support = registered_support();
  if (support.layers == nullptr)
    return failed(file.string(), no_modules);
  return support.layers(file);
}

void set_sandbox_program(const std::filesystem::path& program, sandbox_start begin) {
  if (const auto& support = registered_support(); support.set_sandbox_program != nullptr)
    support.set_sandbox_program(program, begin);
}

int sandbox_main(std::span<const char* const> words) {
  const auto& support = registered_support();
  return support.sandbox_main == nullptr ? 1 : support.sandbox_main(words);
}

module_registration::module_registration(const module_support& support) noexcept { registered_support() = support; }

} // namespace mneme

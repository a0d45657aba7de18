#include "runtime/base/arithmetic.hpp"
#include <cstdlib>
#include <stdexcept>
#include <string_view>
namespace mneme {
namespace {

using install_function = void (*)();

/// The registered function, in a function-local static, because registrations run before main(). Null if the optional
/// part is not linked.
install_function& installer() {
  static install_function install = nullptr;
  return install;
}

} // namespace

bool is_portable() {
  static const bool portable = [] {
    const char* const said = std::getenv(arithmetic_variable);
    return said != nullptr && std::string_view(said) == portable_word;
  }();
  return portable;
}

bool has_portable_arithmetic() noexcept { return installer() != nullptr; }

void use_arithmetic() {
  if (!is_portable())
    return;
  if (!has_portable_arithmetic())
    throw std::runtime_error(no_portable_arithmetic);
  installer()();
}

portable_arithmetic_registration::portable_arithmetic_registration(void (*install)()) noexcept {
  installer() = install;
}

} // namespace mneme

#include "tools/python/engine/user_errors.hpp"
#include <filesystem>
#include <fmt/format.h>
#include <nanobind/stl/string.h>
namespace mneme {
namespace {

nb::object& first_error() {
  static auto* const kept = new nb::object(nb::none()); // never destroyed, because the interpreter may end first
  return *kept;
}

/// Returns str(object). Escapes lone surrogates, because UTF-8 cannot represent them.
std::string text_of(nb::handle object) {
  const nb::str text(object);
  const auto bytes = nb::steal(PyUnicode_AsEncodedString(text.ptr(), "utf-8", "backslashreplace"));
  if (!bytes.is_valid())
    throw nb::python_error();
  return {PyBytes_AsString(bytes.ptr()), static_cast<std::size_t>(PyBytes_Size(bytes.ptr()))};
}

/// True for files of the package or of torch; false for files of the user.
bool is_ours(const std::string& file) {
  const auto folder = std::filesystem::path(file).parent_path().filename();
  return folder == "mneme" || file.find("/torch/") != std::string::npos || file.starts_with("<frozen");
}

std::string place_of(nb::handle traceback) {
  std::string place;
  for (auto at = nb::borrow(traceback); at.is_valid() && !at.is_none(); at = at.attr("tb_next")) {
    const auto file = text_of(at.attr("tb_frame").attr("f_code").attr("co_filename"));
    if (!is_ours(file))
      place = fmt::format("{}:{}", file, nb::cast<int>(at.attr("tb_lineno")));
  }
  return place;
}

} // namespace

std::runtime_error user_error(nb::python_error& thrown, const char* where) {
  std::string place, text;
  try {
    if (thrown.traceback().is_valid())
      place = place_of(thrown.traceback());
    text = fmt::format("{}: {}", text_of(thrown.type().attr("__name__")), text_of(thrown.value()));
    if (first_error().is_none())
      first_error() = nb::borrow(thrown.value());
  } catch (nb::python_error&) {
    text = "an exception that cannot be formatted";
  }
  return std::runtime_error(fmt::format("{}{}in {}: {}", place, place.empty() ? "" : ": ", where, text));
}

std::runtime_error user_error(nb::handle generator, const char* where, const std::string& text) {
  std::string place;
  if (!generator.is_valid()) // the function has no yield
    return std::runtime_error(fmt::format("in {}: {}", where, text));
  try {
    const nb::object frame = nb::getattr(generator, "gi_frame", nb::none());
    const nb::object code = nb::getattr(generator, "gi_code", nb::none());
    if (!code.is_none())
      place = fmt::format("{}:{}: ", text_of(code.attr("co_filename")),
                          nb::cast<int>(frame.is_none() ? code.attr("co_firstlineno") : frame.attr("f_lineno")));
  } catch (nb::python_error&) {
    place.clear();
  }
  return std::runtime_error(fmt::format("{}in {}: {}", place, where, text));
}

nb::object take_first_error() { return std::exchange(first_error(), nb::none()); }

} // namespace mneme

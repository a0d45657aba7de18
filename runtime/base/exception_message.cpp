#include "runtime/base/exception_message.hpp"
#include <algorithm>
#include <c10/util/Exception.h>
#include <string_view>
namespace mneme {
namespace {

constexpr const char* out_of_memory = "out of memory; a smaller worker.fused_clients_max or training.batch needs less";

} // namespace

std::string current_exception_message() {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return out_of_memory;
  } catch (const c10::OutOfMemoryError&) {
    return out_of_memory;
  } catch (const c10::Error& e) {
    return e.what_without_backtrace();
  } catch (const std::exception& e) {
    const std::string text = e.what();
    return text.empty() ? "threw an exception without a message" : text;
  } catch (...) {
    return "threw something that is not a std::exception";
  }
}

std::string torch_error_message(const std::exception& thrown) {
  const auto* of_torch = dynamic_cast<const c10::Error*>(&thrown);
  const std::string text = of_torch ? of_torch->what_without_backtrace() : thrown.what();
  // The interpreter puts a stack trace of the module's code first. The reason is the last line that is not empty.
  constexpr std::string_view lead = "RuntimeError: ";
  if (const auto at = text.rfind(lead); at != std::string::npos)
    return text.substr(at + lead.size(), text.find('\n', at) - at - lead.size());
  const auto first = std::min(text.find_first_not_of(" \n"), text.size());
  return text.substr(first, text.find('\n', first) - first);
}

} // namespace mneme

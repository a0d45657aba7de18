#include "runtime/base/failure_of.hpp"
#include <c10/util/Exception.h>
#include <new>
namespace mneme {
namespace {

constexpr const char* out_of_memory = "out of memory; a smaller worker.models_max or training.batch needs less";

} // namespace

std::string failure_text() {
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
    return text.empty() ? "threw an exception without words" : text;
  } catch (...) {
    return "threw something that is not a std::exception";
  }
}

} // namespace mneme

#include "runtime/method/client_run.hpp"
namespace mneme {

const tensor_map& client_context::memory() const noexcept {
  static const tensor_map nothing;
  return what_.memory ? *what_.memory : nothing;
}

client_run::client_run(const strategy& method, assignment what)
    : what_(std::move(what)), desk_(what_.id), context_(desk_, what_),
      round_(method.client_round(context_, *what_.in)) {}

template <class Act>
round_step client_run::advance(Act act) {
  auto failure = [&](job_id last, const char* text) {
    return round_failure{.last_job = last, .client = what_.client, .round = what_.in->place.round, .what = text};
  };
  try {
    act();
    if (!round_.done())
      return desk_.take_plan();
    return round_.take();
  } catch (const job_error& e) {
    return failure(e.job, e.what());
  } catch (const std::exception& e) {
    return failure({what_.id, desk_.stage(), 0}, e.what());
  } catch (...) {
    return failure({what_.id, desk_.stage(), 0}, "threw something that is not a std::exception");
  }
}

round_step client_run::start() {
  return advance([&] { round_.start(); });
}

round_step client_run::resume(outcomes results) {
  return advance([&] { desk_.answer(std::move(results)); });
}

} // namespace mneme

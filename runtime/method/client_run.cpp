#include "runtime/method/client_run.hpp"
#include <stdexcept>
namespace mneme {

client_run::client_run(const strategy& method, assignment assigned, row_store* made)
    : assigned_(std::move(assigned)), desk_(assigned_.id), context_(desk_, assigned_, made),
      round_(assigned_.looks ? method.client_look(context_, *assigned_.in)
                             : method.client_round(context_, *assigned_.in)) {}

template <class Act>
round_step client_run::advance(Act act) {
  auto failure = [&](job_id last, const char* text) {
    return round_failure{
        .last_job = last, .client = assigned_.client, .round = assigned_.in->place.round, .reason = text};
  };
  try {
    act();
    if (!round_.done())
      return desk_.take_plan();
    auto result = round_.take();
    if (assigned_.looks && (result.upload || result.to_proxy))
      throw std::logic_error("client_look() sends something; what it finds goes into the client's memory");
    return result;
  } catch (const job_error& e) {
    return failure(e.job, e.what());
  } catch (const std::exception& e) {
    return failure({assigned_.id, desk_.stage(), 0}, e.what());
  } catch (...) {
    return failure({assigned_.id, desk_.stage(), 0}, "threw something that is not a std::exception");
  }
}

round_step client_run::start() {
  return advance([&] { round_.start(); });
}

round_step client_run::resume(outcomes results) {
  return advance([&] { desk_.answer(std::move(results)); });
}

} // namespace mneme

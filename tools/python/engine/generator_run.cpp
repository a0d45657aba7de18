#include "tools/python/engine/generator_run.hpp"
#include <fmt/format.h>
#include <nanobind/stl/string.h>
namespace mneme {

generator_run::generator_run(nb::object started, const char* where) : where_(where) {
  if (PyIter_Check(started.ptr()) && nb::hasattr(started, "gi_frame"))
    generator_ = std::move(started);
  else
    value_ = std::move(started); // the function has no yield
}

void generator_run::advance(const std::vector<nb::object>& results) {
  nb::object sent = nb::none();
  if (!jobs_.empty() && is_list_) {
    sent = nb::steal(PyTuple_New(std::ssize(results)));
    for (std::size_t i = 0; i < results.size(); ++i)
      PyTuple_SetItem(sent.ptr(), static_cast<Py_ssize_t>(i), nb::object(results[i]).release().ptr());
  } else if (!jobs_.empty()) {
    sent = results.at(0);
  }
  jobs_.clear();
  yielded_.reset();
  PyObject* answer = nullptr;
  switch (PyIter_Send(generator_.ptr(), sent.ptr(), &answer)) {
  case PYGEN_RETURN:
    value_ = nb::steal(answer);
    break;
  case PYGEN_NEXT:
    take_yielded(nb::steal(answer));
    break;
  case PYGEN_ERROR: {
    nb::python_error thrown; // this takes over the pending exception
    throw user_error(thrown, where_);
  }
  }
}

void generator_run::take_yielded(nb::object yielded) {
  yielded_ = std::move(yielded);
  is_list_ = PyTuple_Check(yielded_.ptr()) || PyList_Check(yielded_.ptr());
  if (!is_list_) {
    jobs_.push_back(job_of(yielded_));
  } else {
    for (auto item : yielded_)
      jobs_.push_back(job_of(item));
    if (jobs_.empty())
      throw error("yielded no job; expected jobs, as in `yield ctx.train(...)`");
  }
}

job_request* generator_run::job_of(nb::handle object) const {
  if (!nb::inst_check(object) || !object.type().is(nb::type<job_request>()))
    throw error(fmt::format("yielded {}; expected a job, as in `yield ctx.train(...)`, or a tuple of them",
                            nb::cast<std::string>(nb::repr(object)).substr(0, 100)));
  auto* const request = nb::inst_ptr<job_request>(object);
  if (std::exchange(request->is_yielded, true))
    throw error("yielded a job twice; expected a new job each time, as ctx.train() returns");
  return request;
}

plan make_stage(const std::vector<job_request*>& requests) {
  plan stage;
  for (auto* request : requests)
    stage.push_back(std::move(request->request));
  return stage;
}

std::vector<work_output> outputs_of(outcomes results, job_id owner) {
  std::vector<work_output> outputs;
  for (std::size_t i = 0; i < results.size(); ++i) {
    owner.step = static_cast<std::uint32_t>(i);
    if (const auto* const reason = std::get_if<std::string>(&results[i]))
      throw job_error(owner, *reason);
    outputs.push_back(std::get<work_output>(std::move(results[i])));
  }
  return outputs;
}

std::vector<nb::object> objects_of(const std::vector<work_output>& outputs) {
  std::vector<nb::object> objects;
  for (const auto& output : outputs)
    objects.push_back(nb::cast(job_result{.output = output}));
  return objects;
}

} // namespace mneme

// module: the Python module mneme._engine, used by the package in ../mneme.
#include "tools/python/engine/python_method.hpp"
#include "tools/python/engine/python_server.hpp"
#include "tools/python/engine/run_handle.hpp"

NB_MODULE(_engine, module) {
  mneme::find_torch();
  nanobind::set_leak_warnings(false); // registered classes are never released
  mneme::bind_jobs(module);
  mneme::bind_client_view(module);
  mneme::bind_servers(module);
  mneme::bind_method_setup(module);
  mneme::bind_runs(module);
  module.def("_host", &mneme::host_method);
}

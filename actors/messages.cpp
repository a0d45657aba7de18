#include "runtime/client_run.hpp"

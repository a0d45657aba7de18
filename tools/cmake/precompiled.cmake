# Precompiled headers: the headers of LibTorch, CAF and the standard library that nearly every source reads are parsed
# once. Sources still include what they use; tools/checks/includes_check.py compiles some of them without precompiled
# headers.  Templates of a precompiled header are instantiated in every source, so each kind has only headers that most
# of its sources use. CPU seconds for an empty source: 0.5 with tensors, 1.7 with operators, 1.0 with actors. Without
# precompiling, ATen's operators take 3.3 s and CAF 1.6 s.
set(mneme_headers_tensors
  <algorithm> <array> <atomic> <bit> <charconv> <chrono> <cmath> <coroutine> <cstdint> <cstdio> <cstring> <deque>
  <filesystem> <fstream> <functional> <limits> <map> <memory> <mutex> <numbers> <numeric> <optional> <set> <span> <sstream>
  <stdexcept> <string> <string_view> <thread> <tuple> <unordered_map> <utility> <variant> <vector>
  <ATen/core/Tensor.h> <fmt/format.h> <tl/expected.hpp>)
set(mneme_headers_operators ${mneme_headers_tensors} <ATen/ATen.h>)
set(mneme_headers_actors ${mneme_headers_tensors}
  <caf/actor_system_config.hpp> <caf/scoped_actor.hpp> <caf/typed_event_based_actor.hpp> <caf/typed_response_promise.hpp>)
# LibTorch's logging and Catch2 both define CHECK; the last definition is used.
set(mneme_headers_catch2
  <catch2/catch_approx.hpp> <catch2/catch_test_macros.hpp> <catch2/generators/catch_generators.hpp>
  <catch2/matchers/catch_matchers_floating_point.hpp> <catch2/matchers/catch_matchers_string.hpp>)
set(mneme_headers_tests ${mneme_headers_tensors} <c10/util/Logging.h> ${mneme_headers_catch2})
set(mneme_headers_operator_tests ${mneme_headers_operators} ${mneme_headers_catch2})
set(mneme_libraries_actors CAF::core)
set(mneme_libraries_tests Catch2::Catch2)
set(mneme_libraries_operator_tests Catch2::Catch2)
# Tests are compiled more often than they are run.
set(mneme_options_tests $<$<CONFIG:Release>:-O1>)
set(mneme_options_operator_tests ${mneme_options_tests})

# mneme_precompile(TARGET KIND): compiles TARGET's sources with the precompiled headers of KIND, which are built once
# for all targets.
function(mneme_precompile target kind)
  set(holder mneme_headers_of_${kind})
  if(NOT TARGET ${holder})
    file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/${holder}.cpp CONTENT "// Holds precompiled headers.\n")
    add_library(${holder} OBJECT EXCLUDE_FROM_ALL ${PROJECT_BINARY_DIR}/${holder}.cpp)
    target_link_libraries(${holder} PRIVATE mneme_numbers ${mneme_libraries_${kind}})
    target_compile_options(${holder} PRIVATE ${mneme_options_${kind}})
    target_precompile_headers(${holder} PRIVATE ${mneme_headers_${kind}})
    mneme_checksum(${holder} "${mneme_headers_${kind}}")
  endif()
  target_compile_options(${target} PRIVATE ${mneme_options_${kind}})
  target_precompile_headers(${target} REUSE_FROM ${holder})
endfunction()

# mneme_checksum(HOLDER HEADERS): gives ccache a checksum of the precompiled headers. Otherwise it would read all 400 MB
# of them for every source, and treat equal headers of two builds as different.
function(mneme_checksum holder headers)
  string(MD5 content "${headers} ${CMAKE_CXX_COMPILER_VERSION} ${CMAKE_CXX_FLAGS} ${mneme_versions}")
  file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/${holder}.dir/cmake_pch.hxx.gch.sum CONTENT "${content}\n")
endfunction()

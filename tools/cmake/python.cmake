# The Python package in BUILD/package/mneme: its extension (nanobind), the program, and the content of a wheel
# (pyproject.toml). The package needs position-independent code everywhere, so a build folder is configured either with
# the package or without it.
set(MNEME_PYTHON_EXECUTABLE "python3" CACHE FILEPATH "The Python that the extension is for, with nanobind")

# python_says(RESULT CODE): stores in RESULT the output of Python for a line of code.
function(python_says result code)
  execute_process(COMMAND ${MNEME_PYTHON_EXECUTABLE} -c "${code}" OUTPUT_VARIABLE said OUTPUT_STRIP_TRAILING_WHITESPACE
                  ERROR_VARIABLE error RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "${MNEME_PYTHON_EXECUTABLE} -c '${code}' failed: ${error}\n"
                        "tools/bootstrap --python makes an environment that has what the package is built with")
  endif()
  set(${result} "${said}" PARENT_SCOPE)
endfunction()

if(NOT "${MNEME_PYTHON_FOUND_FOR}" STREQUAL "${MNEME_PYTHON_EXECUTABLE}") # drops the headers of the previous Python
  unset(_Python_INCLUDE_DIR CACHE)
  set(MNEME_PYTHON_FOUND_FOR "${MNEME_PYTHON_EXECUTABLE}" CACHE INTERNAL "")
endif()
set(Python_EXECUTABLE ${MNEME_PYTHON_EXECUTABLE})
find_package(Python 3.11 REQUIRED COMPONENTS Interpreter Development.Module)
if(Python_VERSION VERSION_GREATER_EQUAL 3.12 AND NOT TARGET Python::SABIModule) # CMake before 3.26 does not search it
  add_library(Python::SABIModule INTERFACE IMPORTED)
  target_include_directories(Python::SABIModule INTERFACE ${Python_INCLUDE_DIRS})
endif()
python_says(nanobind_ROOT "import nanobind; print(nanobind.cmake_dir())")
find_package(nanobind CONFIG REQUIRED)

set(package ${PROJECT_BINARY_DIR}/package/mneme)
file(GLOB engine_files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tools/python/engine/*.cpp)
nanobind_add_module(mneme_python STABLE_ABI NB_STATIC NOMINSIZE ${engine_files}) # one file for Python 3.12 and later
get_target_property(engine_suffix mneme_python SUFFIX)
file(GLOB other_engines ${package}/_engine*.so) # built for another Python
list(REMOVE_ITEM other_engines ${package}/_engine${engine_suffix})
if(other_engines)
  file(REMOVE ${other_engines})
endif()
mneme_check_awaits(${engine_files})
mneme_unity(mneme_python)
mneme_links(mneme_python cli strategies ${optional_layers})
target_link_libraries(mneme_python PRIVATE ${CMAKE_DL_LIBS})
target_include_directories(mneme_python SYSTEM PRIVATE ${EXPECTED_INCLUDE})
# Exports only the entry point of the extension, so that its symbols cannot clash with other libraries of the process.
# The extension uses the LibTorch that `import torch` has loaded.
set(exported ${CMAKE_CURRENT_LIST_DIR}/python.map)
target_link_options(mneme_python PRIVATE -Wl,--version-script=${exported})
set(engine_paths "$ORIGIN/lib;$ORIGIN/../torch/lib;$ORIGIN/../nvidia/cu13/lib")
set_target_properties(mneme_python PROPERTIES OUTPUT_NAME _engine LIBRARY_OUTPUT_DIRECTORY ${package}
                      LINK_DEPENDS ${exported} BUILD_RPATH "${engine_paths}" INSTALL_RPATH "${engine_paths}")
target_link_options(mneme_python PRIVATE -Wl,--disable-new-dtags)

file(GLOB_RECURSE package_files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tools/python/mneme/*)
list(FILTER package_files EXCLUDE REGEX "__pycache__")
add_custom_target(python_package ALL
  COMMAND ${CMAKE_COMMAND} -E copy_if_different ${package_files} ${package}
  COMMAND ${CMAKE_COMMAND} -E make_directory ${package}/bin
  COMMAND ${CMAKE_COMMAND} -E create_symlink $<TARGET_FILE:mneme> ${package}/bin/mneme
  COMMENT "The package in ${package}")
file(STRINGS ${TORCH_HOME}/version.py torch_version REGEX "^__version__ = ")
string(REGEX MATCH "[0-9]+[.][0-9]+" torch_minor "${torch_version}") # the package refuses other minor versions
file(WRITE ${package}/_version.py "version = \"${PROJECT_VERSION}\"\ntorch = \"${torch_minor}\"\n")
add_dependencies(python_package mneme_python mneme)

# A wheel contains the package, the program, and the system libraries that both need. LibTorch is the one in torch's
# package in the same site-packages.
set(in_wheel COMPONENT python EXCLUDE_FROM_ALL)
install(TARGETS mneme_python LIBRARY DESTINATION mneme ${in_wheel})
install(FILES ${package}/_version.py DESTINATION mneme ${in_wheel})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/scenarios DESTINATION mneme/share/mneme ${in_wheel})
install(CODE "
set(package \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/mneme\")
set(program [==[$<TARGET_FILE:mneme>]==])
set(engine [==[$<TARGET_FILE:mneme_python>]==])
set(stripper [==[${CMAKE_STRIP}]==])
set(folders [==[${searched}]==])
set(excluded [==[${runtime};/torch/lib/;/nvidia/]==])" ${in_wheel})
install(SCRIPT ${CMAKE_CURRENT_LIST_DIR}/wheel.cmake ${in_wheel})

# Script that completes a wheel (called by tools/cmake/python.cmake). Copies `program` into `package` without symbols
# (`stripper`), with a relative search path to the libraries in the package and in torch. Copies the system libraries
# that it and `engine` need, except the C and C++ runtime, each once, because a wheel cannot contain links.
set(installed ${package}/bin/mneme)
file(MAKE_DIRECTORY ${package}/bin ${package}/lib)
file(COPY_FILE "${program}" "${installed}")
file(READ_ELF "${installed}" RPATH present)
list(JOIN present ":" present)
file(RPATH_CHANGE FILE "${installed}" OLD_RPATH "${present}"
     NEW_RPATH [==[$ORIGIN/../lib:$ORIGIN/../../torch/lib:$ORIGIN/../../nvidia/cu13/lib]==])
execute_process(COMMAND "${stripper}" --strip-unneeded "${installed}" COMMAND_ERROR_IS_FATAL ANY)

file(GET_RUNTIME_DEPENDENCIES EXECUTABLES "${program}" LIBRARIES "${engine}" RESOLVED_DEPENDENCIES_VAR needed
     DIRECTORIES ${folders} POST_EXCLUDE_REGEXES ${excluded})
foreach(library IN LISTS needed)
  get_filename_component(name "${library}" NAME)
  file(REAL_PATH "${library}" file)
  file(COPY_FILE "${file}" "${package}/lib/${name}")
endforeach()

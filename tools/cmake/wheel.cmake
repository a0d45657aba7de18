# Run when a wheel is made (tools/cmake/python.cmake): copies `program` into `package`, without symbols (`stripper`), where
# it looks for libraries relative to itself alone, in the package and in torch beside it; and copies what it and `engine`
# need of the system's libraries but for the C and C++ runtime, each once, as a wheel has no links.
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

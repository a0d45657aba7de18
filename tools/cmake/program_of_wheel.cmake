# Run when a wheel is made: `program`, a copy of what was built, looks for libraries relative to itself alone, in the wheel and
# in torch beside it; `stripper` takes its symbols.
file(READ_ELF "${program}" RPATH present)
list(JOIN present ":" present)
file(RPATH_CHANGE FILE "${program}" OLD_RPATH "${present}"
     NEW_RPATH [==[$ORIGIN/../lib:$ORIGIN/../../torch/lib:$ORIGIN/../../nvidia/cu13/lib]==])
execute_process(COMMAND "${stripper}" --strip-unneeded "${program}" COMMAND_ERROR_IS_FATAL ANY)

#include "tools/cli/command_line.hpp"

int main(int count, char** words) { return mneme::run_command_line(count, words); }

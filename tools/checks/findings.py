"""Common parts of the rules of tools/tidy.py: findings, and the text that is checked."""
import collections

CODE = (".hpp", ".cpp", ".cu", ".cuh")

# Functions that the language or CAF calls, so that the tree contains no call of them.
CALLED_BY_OTHERS = {"main", "await_ready", "await_suspend", "await_resume", "get_return_object", "initial_suspend",
                    "final_suspend", "return_value", "return_void", "unhandled_exception", "make_behavior", "inspect",
                    "to_string", "from_string", "from_integer", "begin", "end", "exec_later",
                    "process_and_close_socket"}
# Overloads found by argument-dependent lookup; each is declared with its type.
FOUND_BY_ARGUMENT = {"persist"}

Finding = collections.namedtuple("Finding", "path line rule text")


def top(path):
    return path.split("/", 1)[0]


def numbered(text):
    return enumerate(text.split("\n"), start=1)

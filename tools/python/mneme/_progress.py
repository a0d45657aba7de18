"""Progress display: the program's block on a terminal, one line in a notebook."""
import sys


def in_notebook():
    """True in an IPython notebook."""
    shell = sys.modules.get("IPython")
    shell = shell.get_ipython() if shell else None
    return shell is not None and type(shell).__name__ == "ZMQInteractiveShell"


def on_terminal():
    return sys.stdout is sys.__stdout__ and sys.stdout is not None and sys.stdout.isatty()


class NotebookLine:
    """One line in a notebook, updated by each evaluation."""

    def __init__(self):
        from IPython.display import display
        self.handle = display({"text/plain": "mneme: loading"}, raw=True, display_id=True)
        self.accuracy = None

    def evaluated(self, record):
        self.accuracy = record["accuracy"]

    def moved(self, pace):
        done, rounds, _, seconds, _ = pace
        share = f"round {done} of {rounds}" if rounds else f"round {done}"
        accuracy = f", accuracy {self.accuracy:.2f} %" if self.accuracy is not None else ""
        if self.handle:
            self.handle.update({"text/plain": f"mneme: {share}{accuracy}, {seconds:.0f} s"}, raw=True)


class Nothing:
    """No display; users can pass on_evaluation."""

    def evaluated(self, record):
        pass

    def moved(self, pace):
        pass

"""`python -m mneme` is the program."""
from mneme._program import main

if __name__ == "__main__":
    main()

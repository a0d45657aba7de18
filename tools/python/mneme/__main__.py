"""`python -m mneme` runs the program `mneme`."""
from mneme._program import main

if __name__ == "__main__":
    main()

"""`python -m uform`: the command line."""

from uform.cli import main

if __name__ == "__main__":
    main()

"""`python -m scaletest` is the same program as the `scaletest` script."""

from scaletest.cli.main import main

if __name__ == "__main__":
    main()

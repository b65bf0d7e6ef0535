"""The command line: thin layers over `theory` and `numerics`."""

from numerics.cli.app import main

__all__ = ["main"]

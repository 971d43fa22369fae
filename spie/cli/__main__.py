"""`python -m spie.cli`, the same as `spie`."""

from spie.cli import main

main()

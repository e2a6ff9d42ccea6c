"""`python -m hedgerow` is `hedgerow`."""

from hedgerow.cli import main

main()

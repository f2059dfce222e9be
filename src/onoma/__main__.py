"""`python -m onoma`."""

from onoma.cli import main

main()

"""The systems: one package a paper, each readable beside it; what they share stands in `blocks`."""

"""The systems, one package per paper; what they share is in `blocks`."""

"""The experiments of the write-ups, run again: each module writes the figures of one page under docs/studies."""

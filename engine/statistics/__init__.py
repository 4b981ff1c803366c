"""How sure numbers are: draws of datums, intervals, comparisons."""

"""Functions that mirror single-call tools: plain lists in, the results of those tools out."""

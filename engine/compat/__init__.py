"""Functions that mirror single-call tools: plain lists in, what those tools return out."""

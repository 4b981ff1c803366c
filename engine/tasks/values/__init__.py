"""Values: numbers that the table has per datum, summarised under the user's metric names."""

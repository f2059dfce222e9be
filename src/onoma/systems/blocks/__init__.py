"""Components that several systems share."""

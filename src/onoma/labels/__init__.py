"""What users ask for: labels, thresholds, their translation, encoded types, and which model reads a text."""

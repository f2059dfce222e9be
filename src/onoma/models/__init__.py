"""Model folders: their configuration, where they are found, what they contain, and their export."""

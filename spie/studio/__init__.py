"""The studio: one HTML page, without network, in which to draw a maze, race agents in it and walk it oneself."""

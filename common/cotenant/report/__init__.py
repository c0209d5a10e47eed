"""Views of records. Knows results, findings and stats only."""

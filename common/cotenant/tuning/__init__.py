"""The search for a job's fastest setting. Pure: results of launches go in, the next setting comes out."""

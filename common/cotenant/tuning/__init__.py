"""The search for a job's fastest setting. Pure: what launches answered goes in, the next setting comes out."""

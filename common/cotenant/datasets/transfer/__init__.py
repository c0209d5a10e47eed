"""Files from HTTP servers and local folders: resumed, retried over several sources, verified. Standard library only."""

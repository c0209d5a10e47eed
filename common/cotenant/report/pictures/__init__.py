"""Pictures of a report: SVG that stands inside a page, takes its colours and is the same at every run."""

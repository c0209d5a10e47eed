"""Pictures of a report: SVG inside a page, in the page's colours, and equal at every run."""

"""What a set's files show. The only modules here that import numpy and PIL at their top, beside `idx`."""

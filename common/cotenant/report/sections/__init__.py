"""The sections of a report's page: each a function of the report's contents, which returns None if it has nothing."""

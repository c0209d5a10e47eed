"""The sections of a report's page: functions of the report's contents, which return None if they have nothing."""

"""Views of records: tables, pages and sentences. It launches nothing."""

"""A laboratory for flash storage."""

"""Which default to take, and how it compares with what others use today."""

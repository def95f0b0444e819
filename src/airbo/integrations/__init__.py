"""The optimizer inside other tools."""

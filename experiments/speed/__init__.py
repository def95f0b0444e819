"""What asks and commands cost."""

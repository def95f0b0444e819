"""``airbo serve``: a page to work on, beside the machine."""

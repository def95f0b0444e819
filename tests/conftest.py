import torch
from hypothesis import settings

# The same examples in every run, and no deadline: the first call of a torch function is slow.
settings.register_profile("airbo", derandomize=True, deadline=None)
settings.load_profile("airbo")

torch.set_num_threads(1)

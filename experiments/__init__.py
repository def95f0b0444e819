"""Measured evidence: every number and picture that README and docs show, with its program.

``harness``   runs, keeps, tabulates and draws experiments, and knows none of them
``subjects``  what is compared (methods, rivals) and on what (uncertainties, cases)
``speed``     time, memory and accuracy of the surrogates, as ratios measured in one run
``paper``     figures and tables of the paper
``theory``    its bounds beside measurements
``choosing``  how the default surrogate was chosen
``figures``   pictures of README and docs
``results``   numbers and tables that came out

Imports point up this list; ``registry`` and the command line know all of it.
"""

"""Measured evidence: the programs behind every number and picture in README and docs.

``harness``   runs, stores, tabulates and draws any experiment
``subjects``  what is compared (methods, rivals), and where (uncertainties, cases)
``speed``     time, memory and accuracy of the surrogates, as ratios measured in one run
``paper``     figures and tables of the paper
``theory``    the bounds of the paper and measurements
``choosing``  how the default surrogate was chosen
``figures``   pictures of README and docs
``results``   measured numbers and tables

Imports point up this list; ``registry`` and the command line import everything.
"""

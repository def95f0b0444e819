"""Covariances between uncertain inputs: GPyTorch kernels that compare features of P_x."""

from airbo.kernels.gaussian import ERBFKernel, SKLKernel
from airbo.kernels.integral import IntegralKernel
from airbo.kernels.mmd import MMDKernel

__all__ = ["ERBFKernel", "IntegralKernel", "MMDKernel", "SKLKernel"]

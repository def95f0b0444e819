"""Base kernels keep the contract that GPyTorch tests its own kernels with."""

from unittest import TestCase

from gpytorch.test.base_kernel_test_case import BaseKernelTestCase

from airbo.embeddings import RationalQuadraticSum


class TestRationalQuadraticSum(BaseKernelTestCase, TestCase):
    seed = 0

    def create_kernel_no_ard(self, **kwargs):
        return RationalQuadraticSum(**kwargs)

    def create_kernel_ard(self, num_dims, **kwargs):
        return self.create_kernel_no_ard(ard_num_dims=num_dims, **kwargs)

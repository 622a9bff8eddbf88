"""Distributions of a vector, each described by some numbers that a network computes.

Bernoulli: F independent components that are 0 or 1; the numbers are their logits.
Mixture of Gaussians: K normal distributions with diagonal covariance (Bishop 1994; Graves 2013, section 4.1),
    p(y) = sum_k pi_k prod_f N(y_f; mu_kf, sigma_kf)     pi = softmax(.), sigma = exp(.)
described by K logits of pi, K F means and K F logarithms of sigma.
"""

import math
from abc import ABC, abstractmethod

import torch
from torch import Generator, Tensor, nn
from torch.nn.functional import logsigmoid

LEAST_LOG_SIGMA = -7.0  # a component on one point would have an infinite density


class Density(nn.Module, ABC):
    """A distribution of vectors (..., features), described by vectors (..., size)."""

    size: int

    def __init__(self, features: int):
        super().__init__()
        self.features = features

    @abstractmethod
    def log_prob(self, numbers: Tensor, values: Tensor) -> Tensor:
        """The logarithm of the probability, or of its density.  (..., size), (..., features) -> (...)"""

    @abstractmethod
    def sample(self, numbers: Tensor, generator: Generator | None = None, temperature: float = 1.0) -> Tensor:
        """One vector each; below 1 the temperature makes likely ones likelier.  (rows, size) -> (rows, features)"""


class Bernoulli(Density):
    def __init__(self, features: int):
        super().__init__(features)
        self.size = features

    def log_prob(self, numbers: Tensor, values: Tensor) -> Tensor:
        numbers = numbers.to(values.dtype)
        return (values * logsigmoid(numbers) + (1 - values) * logsigmoid(-numbers)).sum(-1)

    def sample(self, numbers: Tensor, generator: Generator | None = None, temperature: float = 1.0) -> Tensor:
        return torch.bernoulli(torch.sigmoid(numbers / temperature), generator=generator)


class Gaussians(Density):
    def __init__(self, features: int, components: int):
        super().__init__(features)
        self.components, self.size = components, components * (1 + 2 * features)

    def parts(self, numbers: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """log pi (..., K), mu (..., K, F), log sigma (..., K, F)"""
        count = self.components * self.features
        weights, means, scales = numbers.split([self.components, count, count], dim=-1)
        shape = (self.components, self.features)
        return (
            weights.log_softmax(-1),
            means.unflatten(-1, shape),
            scales.unflatten(-1, shape).clamp_min(LEAST_LOG_SIGMA),
        )

    def log_prob(self, numbers: Tensor, values: Tensor) -> Tensor:
        weights, means, scales = self.parts(numbers.to(values.dtype))
        errors = (values[..., None, :] - means) * torch.exp(-scales)
        each = -0.5 * errors.square().sum(-1) - scales.sum(-1)  # (..., K)
        return torch.logsumexp(weights + each, dim=-1) - 0.5 * self.features * math.log(2 * math.pi)

    def sample(self, numbers: Tensor, generator: Generator | None = None, temperature: float = 1.0) -> Tensor:
        """The temperature divides the logits of pi, and its root multiplies sigma."""
        weights, means, scales = self.parts(numbers)
        chosen = (weights / temperature).softmax(-1).multinomial(1, generator=generator)[:, 0]  # (rows,)
        rows = torch.arange(len(numbers), device=numbers.device)
        noise = torch.randn(means[:, 0].shape, generator=generator, device=numbers.device, dtype=numbers.dtype)
        return means[rows, chosen] + noise * scales[rows, chosen].exp() * temperature**0.5

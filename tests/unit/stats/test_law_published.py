"""Published scalability data: our fit beside the coefficients that the R package `usl` publishes
for them.

Both data sets come with `usl` (Gunther, Guerrilla Capacity Planning, 2007). Version 3 minimises
squares of the throughput itself and so lets large throughputs decide. We minimise relative errors,
which gives the small throughputs the same say, and lands beside it.
"""

from dataclasses import dataclass

import pytest

from scaletest.stats.law import Law, fit_law
from tests.unit.oracle import oracle


@dataclass(frozen=True)
class Published:
    """Workers, throughputs; coefficients with the half-widths of their 95 % intervals."""

    workers: tuple[float, ...]
    rates: tuple[float, ...]
    rate: tuple[float, float]
    contention: tuple[float, float]
    coherency: tuple[float, float]

    @property
    def points(self) -> list[tuple[float, float]]:
        return list(zip(self.workers, self.rates, strict=True))


# A ray tracer on an SGI Origin 2000.
RAY_TRACER = Published(
    (1, 4, 8, 12, 16, 20, 24, 28, 32, 48, 64),
    (20, 78, 130, 170, 190, 200, 210, 230, 260, 280, 310),
    (21.8488, 3.9805),
    (0.0578, 0.0241),
    (0.0, 0.000214),
)
# SPEC SDM91 on a Sun SPARCcenter 2000; half-widths are 2.776 standard errors.
SDM91 = Published(
    (1, 18, 36, 72, 108, 144, 216),
    (64.9, 995.9, 1652.4, 1853.2, 1828.9, 1775.0, 1702.2),
    (89.9952, 39.46),
    (0.0277285, 0.0253),
    (0.0001044, 0.0000552),
)
EVERY = pytest.mark.parametrize("data", [RAY_TRACER, SDM91], ids=["ray-tracer", "sdm91"])


@EVERY
def test_our_coefficients_lie_in_the_published_intervals(data: Published) -> None:
    fitted = fit_law("usl", data.points)
    assert fitted.rate == pytest.approx(data.rate[0], abs=data.rate[1])
    assert fitted.contention == pytest.approx(data.contention[0], abs=data.contention[1])
    assert fitted.coherency == pytest.approx(data.coherency[0], abs=data.coherency[1])


def test_fitted_coefficients_are_close_to_the_published_ones() -> None:
    # 2 % in contention and rate where the fit is good; 5 % in the peak, which the data of the other
    # enclose
    fitted = fit_law("usl", RAY_TRACER.points)
    assert fitted.contention == pytest.approx(0.0578, rel=0.02)
    assert fitted.rate == pytest.approx(21.8488, rel=0.02)
    assert fitted.coherency == pytest.approx(0, abs=0.000005)
    published = Law("usl", *(value[0] for value in (SDM91.rate, SDM91.contention, SDM91.coherency)))
    assert published.peak == pytest.approx(96.5, abs=0.1)
    assert fit_law("usl", SDM91.points).peak == pytest.approx(published.peak, rel=0.05)


@EVERY
def test_scipy_agrees_when_it_weighs_as_we_do(data: Published) -> None:
    numpy = oracle("numpy")
    workers, rates = numpy.array(data.workers), numpy.array(data.rates)

    def relative(n: object, rate: float, contention: float, coherency: float) -> object:
        return rates / curve(n, rate, contention, coherency)

    best, _ = oracle("scipy.optimize").curve_fit(
        relative,
        workers,
        numpy.ones_like(rates),
        p0=[rates[0], 0.02, 0.0001],
        bounds=(0, numpy.inf),
        x_scale=[rates[0], 0.01, 0.0001],
        xtol=1e-14,
        ftol=1e-14,
        gtol=1e-14,
    )
    fitted = fit_law("usl", data.points)
    assert fitted.rate == pytest.approx(best[0], rel=1e-5)
    assert fitted.contention == pytest.approx(best[1], rel=1e-4)
    assert fitted.coherency == pytest.approx(best[2], rel=1e-3, abs=1e-8)


def curve(n, rate, contention, coherency):  # type: ignore[no-untyped-def]  # arrays of a library that is not ours
    """The Universal Scalability Law on arrays."""
    return rate * n / (1 + contention * (n - 1) + coherency * n * (n - 1))

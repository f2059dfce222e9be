"""Settings that all tests share."""

from hypothesis import HealthCheck, settings

settings.register_profile("onoma", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
settings.load_profile("onoma")

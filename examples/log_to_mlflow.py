"""An interval in MLflow: its document, its ends as metrics, and its picture (`pip install mlflow "accountable-ope[plots]"`)."""

import mlflow

import accountable_ope as aope


def log_interval(interval: aope.Interval) -> None:
    """Into the run that is active: what is compared across runs as metrics, and all that the result says as files."""
    mlflow.log_metrics({"value_lower": interval.lower, "value_upper": interval.upper, "delta": interval.delta})
    mlflow.log_dict(interval.to_dict(), "interval.json")  # status, premises, certificate: what a metric cannot say
    mlflow.log_figure(interval.plot().figure, "interval.png")
    mlflow.set_tags({"aope.status": interval.status.name, "aope.guarantee": interval.guarantee.value})

"""What a bucket's refusal means."""

from __future__ import annotations

import pytest

from penstock.errors import InvalidError
from penstock.storage.options import StorageOptions
from penstock.storage.reachability import check_reachable


def test_a_buckets_name_means_nothing() -> None:
    nowhere = StorageOptions.of({"aws_endpoint_url": "http://127.0.0.1:9", "aws_skip_signature": True})
    with pytest.raises(InvalidError, match=r"s3://region-lake at .* nothing answers: check aws_endpoint_url"):
        check_reachable("s3://region-lake/x", nowhere)

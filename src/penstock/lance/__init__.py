"""Lance partitioned namespaces: one logical table over many Lance datasets. Needs `penstock[lance]`."""

from penstock.lance.namespace import Namespace, create
from penstock.lance.namespace import open_namespace as open

__all__ = ["Namespace", "create", "open"]

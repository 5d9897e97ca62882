"""Runs what docs/clients.md shows."""

import os
import sys

import grpc

sys.path.insert(0, "grpcio")

from plantstore.v1 import plant_service_pb2, plant_service_pb2_grpc  # noqa: E402

token = os.environ["TOKEN"]
# The lines of docs/clients.md stand here.

"""Calls Catalog.GetBook by what the reflection of the server tells of it: reflection_client.py AUTHORITY BOOK."""

import sys

import grpc
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

_, authority, book = sys.argv
channel = grpc.insecure_channel(authority)
pool = DescriptorPool(ProtoReflectionDescriptorDatabase(channel))
method = pool.FindServiceByName("catalog.v1.Catalog").methods_by_name["GetBook"]
request, response = GetMessageClass(method.input_type), GetMessageClass(method.output_type)
call = channel.unary_unary("/catalog.v1.Catalog/GetBook", request.SerializeToString, response.FromString)
print(call(request(name=book), timeout=10).title)

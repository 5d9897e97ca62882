"""Serves every RPC of a FileDescriptorSet by grpcio, and prints its port: `python echo.py definitions.binpb`."""

import sys
from concurrent import futures

import grpc
from google.protobuf import json_format
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass


def fail(context, code):
    if code != 0:
        known = (status for status in grpc.StatusCode if status.value[0] == code)
        context.abort(next(known, grpc.StatusCode.UNKNOWN), "as asked")


def answer(method, request, context):
    """Answers one message, as conformance/README.md and the kitchen sink say."""
    Answer = GetMessageClass(method.output_type)
    match method.name:
        case "Fail":
            fail(context, request.code if hasattr(request, "code") else request.f_int32)
        case "GetFile":
            return Answer(content_type=request.content_type, data=request.data)
        case "GetFileField":
            return Answer(file={"content_type": request.content_type, "data": request.data})
        case _ if method.output_type == method.input_type:
            return request
        case rpc if method.output_type.full_name == "kitchensink.v1.Echo":
            return Answer(rpc=rpc, sink=request)
        case rpc if method.output_type.full_name == "transcoding.v1.Echo":
            return Answer(rpc=rpc, message=json_format.MessageToJson(request, descriptor_pool=pool))
    return Answer()


def count(method, request, context):
    for index in range(1, request.count + 1):
        yield GetMessageClass(method.output_type)(index=index, text="item")
    fail(context, request.fail_with)


def get_pieces(method, request, context):
    for byte in request.data:
        yield GetMessageClass(method.output_type)(content_type=request.content_type, data=bytes([byte]))


def collect(method, items, context):
    return GetMessageClass(method.output_type)(items=list(items))


def relay(method, items, context):
    return items


streams = {"Count": count, "GetPieces": get_pieces, "Collect": collect, "Relay": relay, "KeepAll": relay}


def handler_of(method):
    kind = "_".join("stream" if streams else "unary" for streams in (method.client_streaming, method.server_streaming))
    behavior = streams.get(method.name, answer)
    return getattr(grpc, f"{kind}_rpc_method_handler")(
        lambda request, context: behavior(method, request, context),
        request_deserializer=GetMessageClass(method.input_type).FromString,
        response_serializer=lambda message: message.SerializeToString(),
    )


pool = DescriptorPool()
with open(sys.argv[1], "rb") as definitions:
    files = FileDescriptorSet.FromString(definitions.read()).file
for file in files:
    pool.Add(file)
server = grpc.server(futures.ThreadPoolExecutor(16))
for file in files:
    for service in pool.FindFileByName(file.name).services_by_name.values():
        handlers = {method.name: handler_of(method) for method in service.methods}
        server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(service.full_name, handlers)])
port = server.add_insecure_port("127.0.0.1:0")
server.start()
print(port, flush=True)
server.wait_for_termination()

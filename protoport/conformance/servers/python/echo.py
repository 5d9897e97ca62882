"""Serves the echo contract with grpcio, behind a transcoder: `python echo.py PORT`, in a folder with `echo.binpb`, a
descriptor set of the contract with all imports. Prints its port; for 0, it uses a free one.
"""

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


def respond(method, request, context):
    Response = GetMessageClass(method.output_type)
    match method.name:
        case "Fail":
            numbers = (field for field in method.input_type.fields if field.type == field.TYPE_INT32)
            fail(context, getattr(request, next(numbers).name))
        case "GetFile":
            return Response(content_type=request.content_type, data=request.data)
        case "GetFileField":
            return Response(file={"content_type": request.content_type, "data": request.data})
        case _ if method.output_type == method.input_type:
            return request
    kept = method.output_type.fields_by_number.get(2)
    if kept is None:
        return Response()
    if kept.message_type is None:
        request = json_format.MessageToJson(request, descriptor_pool=pool)
    return Response(**{"rpc": method.name, kept.name: request})


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


def behavior_of(method):
    if method.client_streaming:
        return relay if method.server_streaming else collect
    return {"Count": count, "GetPieces": get_pieces}.get(method.name, respond)


def handler_of(method):
    kind = "_".join("stream" if streams else "unary" for streams in (method.client_streaming, method.server_streaming))
    behavior = behavior_of(method)
    return getattr(grpc, f"{kind}_rpc_method_handler")(
        lambda request, context: behavior(method, request, context),
        request_deserializer=GetMessageClass(method.input_type).FromString,
        response_serializer=lambda message: message.SerializeToString(),
    )


pool = DescriptorPool()
with open("echo.binpb", "rb") as definitions:
    files = FileDescriptorSet.FromString(definitions.read()).file
for file in files:
    pool.Add(file)
server = grpc.server(futures.ThreadPoolExecutor(16))
for file in files:
    for service in pool.FindFileByName(file.name).services_by_name.values():
        handlers = {method.name: handler_of(method) for method in service.methods}
        server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(service.full_name, handlers)])
port = server.add_insecure_port(f"127.0.0.1:{sys.argv[1]}")
server.start()
print(port, flush=True)
server.wait_for_termination()

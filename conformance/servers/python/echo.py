"""The echo contract of grpcio, for a transcoder to stand before: `python echo.py PORT`, in the folder that has gen/.

    pip install grpcio grpcio-tools
    python -m grpc_tools.protoc -I PROTO --python_out=gen PROTO/transcoding/v1/echo.proto PROTO/google/api/*.proto

PROTO is the folder `proto` of the package.
"""

import sys
from concurrent import futures

import google
import grpc
from google.protobuf import empty_pb2, json_format
from google.protobuf.message_factory import GetMessageClass

sys.path.insert(0, "gen")
google.__path__.append("gen/google")
from google.api.httpbody_pb2 import HttpBody
from transcoding.v1 import echo_pb2


def fail(context, code):
    known = (status for status in grpc.StatusCode if status.value[0] == code)
    context.abort(next(known, grpc.StatusCode.UNKNOWN), "as asked")


def body_of(request, data):
    return HttpBody(content_type=request.content_type, data=data)


def answer_to(rpc):
    """Returns what serves a unary RPC."""

    def answer(request, context):
        match rpc:
            case "Fail":
                fail(context, request.code)
            case "Return" | "GetField":
                return request
            case "Remove":
                return empty_pb2.Empty()
            case "GetFile":
                return body_of(request, request.data)
            case "GetFileField":
                return echo_pb2.File(file=body_of(request, request.data))
        return echo_pb2.Echo(rpc=rpc, message=json_format.MessageToJson(request))

    return answer


def count(request, context):
    for index in range(1, request.count + 1):
        yield echo_pb2.Item(index=index, text="item")
    if request.fail_with:
        fail(context, request.fail_with)


def get_pieces(request, context):
    for byte in request.data:
        yield body_of(request, bytes([byte]))


streams = {
    "Count": count,
    "Collect": lambda items, context: echo_pb2.Items(items=list(items)),
    "Relay": lambda items, context: items,
    "GetPieces": get_pieces,
}


def handler_of(method):
    kind = "_".join("stream" if streams else "unary" for streams in (method.client_streaming, method.server_streaming))
    return getattr(grpc, f"{kind}_rpc_method_handler")(
        streams.get(method.name) or answer_to(method.name),
        request_deserializer=GetMessageClass(method.input_type).FromString,
        response_serializer=lambda message: message.SerializeToString(),
    )


server = grpc.server(futures.ThreadPoolExecutor(16))
for service in echo_pb2.DESCRIPTOR.services_by_name.values():
    handlers = {method.name: handler_of(method) for method in service.methods}
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(service.full_name, handlers)])
server.add_insecure_port(f"127.0.0.1:{sys.argv[1]}")
server.start()
server.wait_for_termination()

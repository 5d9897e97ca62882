import type { DescService, MessageInitShape } from "@bufbuild/protobuf";
import { Code, type ServiceImpl } from "@connectrpc/connect";
import type {
  ServerReflection,
  ServerReflectionRequest,
  ServerReflectionResponseSchema,
} from "../protobuf/gen/grpc/reflection/v1/reflection_pb.ts";
import { DescriptorIndex } from "./descriptor-index.ts";

type Response = NonNullable<MessageInitShape<typeof ServerReflectionResponseSchema>["messageResponse"]>;

/**
 * Creates the implementation for `grpc.reflection.v1.ServerReflection`. The implementation also works for
 * `grpc.reflection.v1alpha`, which tools such as ghz and grpcio-reflection use.
 *
 * A request with an unknown name gets an error response, and the stream continues. Requests are handled one at a time,
 * so a client that does not read its responses gets no further responses.
 */
export function createReflectionService(services: readonly DescService[]): ServiceImpl<typeof ServerReflection> {
  const index = new DescriptorIndex(services);
  return {
    async *serverReflectionInfo(requests) {
      for await (const request of requests) {
        yield { validHost: request.host, originalRequest: request, messageResponse: respond(request, index) };
      }
    },
  };
}

function respond({ messageRequest: query }: ServerReflectionRequest, index: DescriptorIndex): Response {
  switch (query.case) {
    case "fileByFilename":
      return fileResponse(index.fileNamed(query.value), query.value);
    case "fileContainingSymbol":
      return fileResponse(index.fileDeclaring(query.value), query.value);
    case "fileContainingExtension": {
      const { containingType, extensionNumber } = query.value;
      return fileResponse(index.fileExtending(containingType, extensionNumber), `${containingType} ${extensionNumber}`);
    }
    case "allExtensionNumbersOfType": {
      const extensionNumber = index.extensionNumbersOf(query.value);
      if (extensionNumber === undefined) return errorResponse(Code.NotFound, `unknown type ${query.value}`);
      const value = { baseTypeName: query.value, extensionNumber };
      return { case: "allExtensionNumbersResponse", value };
    }
    case "listServices":
      return { case: "listServicesResponse", value: { service: index.services.map((name) => ({ name })) } };
    default:
      return errorResponse(Code.InvalidArgument, "unknown reflection request");
  }
}

function fileResponse(fileDescriptorProto: Uint8Array[] | undefined, name: string): Response {
  if (fileDescriptorProto === undefined) return errorResponse(Code.NotFound, `${name} not found`);
  return { case: "fileDescriptorResponse", value: { fileDescriptorProto } };
}

function errorResponse(errorCode: Code, errorMessage: string): Response {
  return { case: "errorResponse", value: { errorCode, errorMessage } };
}
